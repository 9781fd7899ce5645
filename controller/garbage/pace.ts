import type { HistoryLimits } from '../settings/retention.ts';
import { MIN_AGE_MS } from './stored.ts';

/** A session's history as it was last read. */
export interface HistorySize {
  /** Ended turns, and the bytes of their JSON. */
  turns: number;
  bytes: number;
  /** Bytes of what they have in the store, with what was stored for the session since. */
  stored: number;
  /** Turns that the session had counted by then, in total. */
  counted: number;
}

/**
 * Fraction by which the history may exceed a limit before it is read again: the cost of a read grows with the history.
 */
const SLACK = 0.1;

/**
 * Reports whether the history may exceed its limits by more than the fraction `by`. Turns that ended since count as
 * large as the mean of the others, or as the limits have room for.
 */
export function mayBeOver(left: HistorySize, counted: number, limits: HistoryLimits, by = 0): boolean {
  const since = Math.max(0, counted - left.counted);
  const mean = Math.max(left.bytes / Math.max(1, left.turns), limits.bytes / Math.max(1, limits.turns));
  const turns = left.turns + since;
  const bytes = left.bytes + since * mean;
  // Limits that changed without new turns hold exactly.
  const allowed = (limit: number) => limit + (since > 0 ? Math.floor(limit * by) : 0);
  const isLarge = bytes > allowed(limits.bytes) || left.stored > allowed(limits.stored);
  return turns > allowed(limits.turns) || (turns > 1 && isLarge);
}

/**
 * Milliseconds until the turns of a changed session are worth reading, `agoMs` after the last time. Data stored since
 * then must first be as old as `MIN_AGE_MS`.
 */
export function dueIn(left: HistorySize, agoMs: number, counted: number, limits: HistoryLimits): number {
  return mayBeOver(left, counted, limits, SLACK) ? 0 : Math.max(0, MIN_AGE_MS - agoMs);
}
