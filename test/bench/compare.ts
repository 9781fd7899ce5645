/** Two runs of the benchmark side by side: pure functions. */
import { floorOf, type Measured } from './judge.ts';
import type { BenchFile } from './run.ts';
import { type Interval, median, medianInterval, percentile } from './statistics.ts';
import { markdown, shown } from './table.ts';
import { TARGETS, type Target } from './targets.ts';

/** Figure of a row in one run, in units of its floor; without a floor in its own unit. */
export interface Relative extends Interval {
  figure: number;
  floor: number | undefined;
  value: number;
}

/**
 * Relates the median of a row to its first floor. The interval is that of both medians together: the smallest figure to
 * the largest floor, and the other way round.
 */
export function relative({ bounds: [bound] }: Target, { values, floors }: Measured): Relative {
  const figure = median(values);
  const own = medianInterval(values);
  const floor = bound?.floors && floorOf(bound, floors);
  if (!bound || !floor) return { figure, floor: undefined, value: figure, ...own };
  const [low, high] = (['low', 'high'] as const).map((end) => {
    let sum = 0;
    for (const [name, weight] of Object.entries(bound.floors ?? {})) {
      sum += weight * medianInterval(floors?.[name] ?? [])[end];
    }
    return sum;
  }) as [number, number];
  return { figure, floor, value: figure / floor, low: own.low / high, high: own.high / low };
}

/** Verdict on two figures: they differ when their intervals have nothing in common. */
export function difference(a: Relative, b: Relative, atLeast = false): string {
  if ((a.floor === undefined) !== (b.floor === undefined)) return 'no verdict: only one has its floor';
  if (a.low <= b.high && b.low <= a.high) return 'no difference beyond the spread';
  const isBetter = b.value < a.value !== atLeast;
  return `B is ${isBetter ? 'better' : 'worse'}: × ${(b.value / a.value).toFixed(2)}`;
}

function cell(target: Target, row: BenchFile['rows'][number] | undefined): string {
  if (!row) return 'left out';
  if ('why' in row) return row.why;
  const { figure, floor, value, low, high } = relative(target, row);
  const p99 = target.bounds.some(({ share }) => share === 0.99) ? `, p99 ${shown(percentile(row.values, 0.99))}` : '';
  const measured = `${shown(figure)} ${target.unit}${p99} (n ${row.values.length})`;
  const interval = `[${low.toFixed(2)} … ${high.toFixed(2)}]`;
  return floor === undefined
    ? `${measured} ${interval}`
    : `${measured} ÷ ${shown(floor)} = ${value.toFixed(2)} ${interval}`;
}

/** Table of the rows that either run has, in the order of the targets, and what makes the runs hard to compare. */
export function compareRuns(a: BenchFile, b: BenchFile): string {
  const rows = TARGETS.flatMap((target) => {
    const [one, two] = [a, b].map(({ rows }) => rows.find(({ id }) => id === target.id));
    if (!one && !two) return [];
    const both = one && two && !('why' in one) && !('why' in two);
    const atLeast = target.bounds[0]?.atLeast === true;
    const verdict = both ? difference(relative(target, one), relative(target, two), atLeast) : '–';
    return [[target.what, cell(target, one), cell(target, two), verdict]];
  });
  const speed = ({ machine }: BenchFile) => {
    const [cpu, fsync] = (['cpu', 'fsync'] as const).map((what) => median(machine.flatMap((each) => each[what])));
    return `CPU loop ${shown(cpu as number)} ms, fsync ${shown(fsync as number)} ms`;
  };
  const [one, two] = ([a, b] as const).map(
    (file) => `commit ${file.commit}, ${file.begun}${file.short ? ', SHORT RUN' : ''}; ${speed(file)}`,
  );
  const header = ['what', 'A: p50 ÷ floor = ratio [95 % interval]', 'B', 'A → B'];
  return `A: ${one}\nB: ${two}\n\n${markdown(header, rows)}`;
}
