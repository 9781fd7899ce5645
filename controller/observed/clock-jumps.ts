import type { Leap } from '../../core/runtime.ts';

/**
 * Returns a time in milliseconds since the epoch, moved forward by the jumps of the clock since. All machines may have slept during a
 * jump, so nothing has run or waited for longer than since the moved time. `toldAt`: the moment at which the time was computed, as so
 * many milliseconds ago; jumps before it do not count.
 */
export function movedByLeaps(at: number, leaps: readonly Leap[], toldAt = at): number {
  return leaps.reduce((sum, { until, ms }) => (toldAt <= until ? sum + ms : sum), at);
}
