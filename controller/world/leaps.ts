import type { Leap } from '../../core/runtime.ts';

/**
 * A time in milliseconds since the epoch, moved by what the clock has leapt over since. What has waited or run since that time
 * has done so for no longer than since the moved one: all machines may have slept meanwhile.
 */
export function movedByLeaps(at: number, leaps: readonly Leap[]): number {
  return leaps.reduce((sum, { until, ms }) => (at <= until ? sum + ms : sum), at);
}
