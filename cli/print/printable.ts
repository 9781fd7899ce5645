const OPENING = String.raw`\u001b\[`;
/** Sequences that only set colours and weights: `ESC [ numbers m`. */
const STYLE = `${OPENING}[0-9;]*m`;
const OTHERS = new RegExp(
  `(${STYLE})|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]`,
  'g',
);
const RESET = '\u001b[0m';
/** The end of a piece whose meaning the next piece decides: a carriage return, or a part of a style. */
const CUT = new RegExp(`(?:\\r|\\u001b|${OPENING}[0-9;]{0,32})$`);

/**
 * Makes text of an agent safe for a terminal: it must not move the cursor, change the title or the order of letters, or
 * answer in the user's place. Such characters are shown as `\x1b` or `\u202e`. Colours stay where `style` is true.
 */
export function printable(text: string, style = false): string {
  const shown = escaped(text, style);
  return hasOpenStyle(shown) ? `${shown}${RESET}` : shown;
}

/** Does the same for a text that is to be one line: line feeds are spaces. */
export const printableLine = (text: string): string => printable(text.replace(/\s+/g, ' '));

/** Indents the lines of a text after its first, which must not look like lines of their own. */
export const hanging = (text: string, indent = '  '): string => text.trimEnd().replace(/\r?\n/g, `\n${indent}`);

/** Makes the name of a file safe for a terminal, in one line: a line feed is shown as `\x0a`, a backslash as `\\`. */
export function printableName(name: string): string {
  const escaped = name.replaceAll('\\', '\\\\').replaceAll('\u001b', '\\x1b');
  return printable(escaped.replace(/[\t\n\r]/g, (char) => `\\x0${char.charCodeAt(0).toString(16)}`));
}

/** Makes a text safe for a terminal that comes in pieces: styles may be cut between two, and go on over several. */
export class PrintablePieces {
  #cut = '';
  #isStyled = false;

  add(piece: string, style: boolean): string {
    const text = this.#cut + piece;
    this.#cut = CUT.exec(text)?.[0] ?? '';
    const shown = escaped(text.slice(0, text.length - this.#cut.length), style);
    if (shown.includes('\u001b')) this.#isStyled = hasOpenStyle(shown);
    return shown;
  }

  /** Returns the rest to write after the last piece. */
  end(): string {
    const rest = printable(this.#cut) + (this.#isStyled ? RESET : '');
    this.#cut = '';
    this.#isStyled = false;
    return rest;
  }
}

function escaped(text: string, style: boolean): string {
  return text.replace(/\r(?=\n|$)/g, '').replace(OTHERS, (found, styled: string | undefined) => {
    if (styled !== undefined) return style ? styled : '';
    const code = found.charCodeAt(0);
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
  });
}

/** Reports whether an escaped text ends in a style: its last sequence is no reset. */
function hasOpenStyle(shown: string): boolean {
  const last = shown.lastIndexOf('\u001b');
  return last >= 0 && !['[0m', '[m'].some((reset) => shown.startsWith(reset, last + 1));
}
