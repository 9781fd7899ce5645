/** Order statistics of series of samples. */

/** Returns the smallest value that at least `share` of the values do not exceed; NaN without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);

export interface Interval {
  low: number;
  high: number;
}

/**
 * Returns the order statistics between which the median of the whole population lies with 95 % confidence, whatever its
 * distribution: the ranks follow the binomial distribution, here by its normal approximation. Fewer than six values give
 * their range, which covers less than that.
 */
export function medianInterval(values: readonly number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const { length } = sorted;
  const half = (1.96 * Math.sqrt(length)) / 2;
  const low = Math.max(0, Math.floor(length / 2 - half) - 1);
  const high = Math.min(length - 1, Math.ceil(length / 2 + half));
  return { low: sorted[low] ?? Number.NaN, high: sorted[high] ?? Number.NaN };
}
