import type { Terminal } from '../cli.ts';
import { printable } from './printable.ts';

/** Tables with columns as wide as their cells and three spaces between them, as kubectl aligns. */

const GAP = 3;
/** Columns that are never cut, because people copy them. */
const WHOLE = new Set(['NAMESPACE', 'NAME', 'SESSION']);
const PHASE_COLUMNS = new Set(['PHASE', 'LAST', 'STATUS']);
/** Minimum width of a column that is cut, characters. */
const LEAST = 6;
/** Minimum width of a last column that is wrapped, characters. */
const LEAST_WRAPPED = 24;

const GREEN = 32;
const YELLOW = 33;
const RED = 31;
const CYAN = 36;
const COLOURS: Record<string, number> = {
  Succeeded: GREEN,
  Ready: GREEN,
  Running: CYAN,
  Starting: CYAN,
  Building: CYAN,
  Queued: YELLOW,
  AwaitingApproval: YELLOW,
  Suspending: YELLOW,
  Cancelled: YELLOW,
  Failed: RED,
  TimedOut: RED,
  Terminating: RED,
};

export interface TableOptions {
  /** The terminal that the table has to fit; without one it is as wide as it is. */
  terminal?: Terminal | undefined;
  /** True to continue the last column on the next lines instead of cutting it. */
  wraps?: boolean;
}

/** Formats a table; the first row is the header. */
export function table(rows: string[][], options: TableOptions = {}): string {
  const [header = [], ...body] = rows;
  return new TableWriter(header, options).add([header, ...body]);
}

/** Formats a table whose rows come over time; the columns only become wider. */
export class TableWriter {
  readonly #header: string[];
  readonly #options: TableOptions;
  #widths: number[] = [];

  constructor(header: string[], options: TableOptions = {}) {
    this.#header = header;
    this.#options = options;
  }

  add(rows: string[][]): string {
    const clean = rows.map((row) => row.map((cell) => printable(cell.replace(/\s+/g, ' '))));
    for (const row of clean) this.#widths = row.map((cell, i) => Math.max(length(cell), this.#widths[i] ?? 0));
    const { terminal, wraps = false } = this.#options;
    const widths = terminal ? fitted(this.#widths, this.#header, terminal.columns, wraps) : this.#widths;
    return clean.flatMap((row) => this.#lines(row, widths)).join('');
  }

  #lines(row: string[], widths: number[]): string[] {
    const last = row.length - 1;
    const width = widths[last] ?? 0;
    const [first = '', ...more] = this.#options.wraps ? wrapped(row[last] ?? '', width) : [cut(row[last] ?? '', width)];
    const cells = row.map((cell, i) => {
      const text = i === last ? first : cut(cell, widths[i] ?? 0);
      const padding = i === last ? '' : ' '.repeat((widths[i] ?? 0) - length(text) + GAP);
      return this.#coloured(text, i) + padding;
    });
    const indent = ' '.repeat(widths.slice(0, -1).reduce((sum, each) => sum + each + GAP, 0));
    return [cells.join(''), ...more.map((text) => indent + text)].map((line) => `${line.trimEnd()}\n`);
  }

  #coloured(text: string, column: number): string {
    const colour = PHASE_COLUMNS.has(this.#header[column] ?? '') ? COLOURS[text] : undefined;
    return colour !== undefined && this.#options.terminal?.hasColour ? `\x1b[${colour}m${text}\x1b[0m` : text;
  }
}

/** Returns widths with which a row fits, as far as columns may be cut: the widest one gives way first. */
function fitted(widths: number[], header: string[], columns: number, wraps: boolean): number[] {
  const result = [...widths];
  const least = result.map((width, i) => {
    if (WHOLE.has(header[i] ?? '')) return width;
    if (wraps) return i === result.length - 1 ? Math.min(width, LEAST_WRAPPED) : width;
    return Math.min(width, Math.max(LEAST, length(header[i] ?? '')));
  });
  let over = result.reduce((sum, width) => sum + width, 0) + GAP * (result.length - 1) - columns;
  while (over > 0) {
    const shrinkable = result.map((width, i) => (width > (least[i] ?? 0) ? width : -1));
    const widest = shrinkable.indexOf(Math.max(...shrinkable));
    if ((shrinkable[widest] ?? -1) < 0) break;
    result[widest] = (result[widest] ?? 0) - 1;
    over--;
  }
  return result;
}

function cut(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join('')}…`;
}

/** Breaks a text into lines between its words; a longer word is cut. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && length(line) + 1 + length(word) > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    for (; length(line) > width && width > 0; line = [...line].slice(width).join('')) {
      lines.push([...line].slice(0, width).join(''));
    }
  }
  return [...lines, line];
}

const length = (text: string) => [...text].length;
