import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const MIB = 1024 * 1024;

/** Measured value, the value of the same run that it is compared with, and their difference. */
export interface Figure {
  what: string;
  measured: string;
  beside?: string;
  difference?: string;
  /** All that was measured, for machines. */
  values: unknown;
}

/** Order statistic of a series: the smallest value that `share` of them do not exceed. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

const shown = (value: number) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1));

/** Milliseconds of a series, in a cell. */
export function durations(values: readonly number[]): string {
  const [p50, p99] = [percentile(values, 0.5), percentile(values, 0.99)];
  return `p50 ${shown(p50)} ms, p99 ${shown(p99)} ms (n ${values.length})`;
}

/** A series of milliseconds beside another of the same run. */
export function compared(
  what: string,
  values: readonly number[],
  beside: { what: string; values: readonly number[] },
): Figure {
  const [own, other] = [percentile(values, 0.5), percentile(beside.values, 0.5)];
  const more = own - other;
  return {
    what,
    measured: durations(values),
    beside: `${beside.what}: ${durations(beside.values)}`,
    difference: `${more < 0 ? '−' : '+'}${shown(Math.abs(more))} ms, × ${(own / other).toFixed(2)}`,
    values: { values, beside: beside.values },
  };
}

/** Formats the figures as a Markdown table. */
function table(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, measured, beside = '', difference = '' }) => [what, measured, beside, difference]);
  const header = ['what', 'measured', 'beside, in the same run', 'difference'];
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Prints the table; build/`name`.json has every value. */
export function publish(name: string, figures: readonly Figure[]): void {
  console.log(table(figures));
  const folder = join(import.meta.dirname, '..', '..', 'build');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(figures, null, 2)}\n`);
}
