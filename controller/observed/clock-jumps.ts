import type { Leap } from '../../core/runtime.ts';

/**
 * A time in milliseconds since the epoch, moved by what the clock has leapt over since. What has waited or run since that time
 * has done so for no longer than since the moved one: all machines may have slept meanwhile. `toldAt`: when the time was reckoned
 * back from, by how long something had taken; leaps before do not count.
 */
export function movedByLeaps(at: number, leaps: readonly Leap[], toldAt = at): number {
  return leaps.reduce((sum, { until, ms }) => (toldAt <= until ? sum + ms : sum), at);
}
