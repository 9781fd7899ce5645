/** Order statistics of a series, milliseconds or whatever its unit is. */
export interface Series {
  name: string;
  unit: string;
  values: number[];
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** A Markdown row: name, number of values, minimum, p50, p90, p99, maximum. */
export function row({ name, unit, values }: Series): string {
  const show = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(1));
  const cells = [
    Math.min(...values),
    ...[0.5, 0.9, 0.99].map((share) => percentile(values, share)),
    Math.max(...values),
  ];
  return `| ${name} | ${unit} | ${values.length} | ${cells.map(show).join(' | ')} |`;
}

export const HEADER = [
  '| what | unit | n | min | p50 | p90 | p99 | max |',
  '| --- | --- | --- | --- | --- | --- | --- | --- |',
];
