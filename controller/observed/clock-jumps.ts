import type { ClockJump } from '../../core/runtime.ts';

/**
 * Returns a time in milliseconds since the epoch, moved forward by the jumps of the clock since. All machines may have slept during a
 * jump, so nothing has run or waited for longer than since the moved time. `heardAt`: the moment at which the time was computed, as so
 * many milliseconds ago; jumps before it do not count.
 */
export function movedByClockJumps(at: number, clockJumps: readonly ClockJump[], heardAt = at): number {
  return clockJumps.reduce((sum, { until, ms }) => (heardAt <= until ? sum + ms : sum), at);
}
