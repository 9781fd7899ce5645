import { median } from './statistics.ts';
import { markdown, signed, spread } from './table.ts';

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

/** A series of milliseconds beside another of the same run. */
export function compared(
  what: string,
  values: readonly number[],
  beside: { what: string; values: readonly number[] },
): Figure & { values: Pair } {
  const [own, other] = [median(values), median(beside.values)];
  return {
    what,
    measured: spread(values, 'ms', true),
    beside: `${beside.what}: ${spread(beside.values, 'ms', true)}`,
    difference: `${signed(own - other)} ms, × ${(own / other).toFixed(2)}`,
    values: { values, beside: beside.values },
  };
}

/** Formats figures as a Markdown table. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, measured, beside = '', difference = '' }) => [what, measured, beside, difference]);
  return markdown(['what', 'measured', 'beside, in the same run', 'difference'], rows);
}
