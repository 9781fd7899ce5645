import { percentile } from './statistics.ts';
import { markdown, shown, signed } from './table.ts';

export const MIB = 1024 * 1024;

/** Measured value without a target, the value of the same run that it is compared with, and their difference. */
export interface Figure {
  what: string;
  measured: string;
  beside?: string;
  difference?: string;
  /** All that was measured, for machines. */
  values: unknown;
}

/** Two series of the same run, in milliseconds. */
export interface Pair {
  values: readonly number[];
  beside: readonly number[];
}

/** Milliseconds of a series, in a cell. */
function durations(values: readonly number[]): string {
  const [p50, p99] = [percentile(values, 0.5), percentile(values, 0.99)];
  return `p50 ${shown(p50)} ms, p99 ${shown(p99)} ms (n ${values.length})`;
}

/** A series of milliseconds beside another of the same run. */
export function compared(
  what: string,
  values: readonly number[],
  beside: { what: string; values: readonly number[] },
): Figure & { values: Pair } {
  const [own, other] = [percentile(values, 0.5), percentile(beside.values, 0.5)];
  return {
    what,
    measured: durations(values),
    beside: `${beside.what}: ${durations(beside.values)}`,
    difference: `${signed(own - other)} ms, × ${(own / other).toFixed(2)}`,
    values: { values, beside: beside.values },
  };
}

/** Formats figures as a Markdown table. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, measured, beside = '', difference = '' }) => [what, measured, beside, difference]);
  return markdown(['what', 'measured', 'beside, in the same run', 'difference'], rows);
}
