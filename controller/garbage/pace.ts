import type { HistoryLimits } from '../settings/retention.ts';
import { MIN_AGE_MS } from './stored.ts';

/** What a session's history was when it was last read. */
export interface Left {
  /** Ended turns, and the bytes of their JSON. */
  turns: number;
  bytes: number;
  /** How many turns the session had counted by then, ever. */
  counted: number;
}

/** By this part of a limit it may be passed before the history is read again: reading costs as much as it is long. */
const SLACK = 0.1;

/**
 * Whether the history may be over its limits, by more than a part of them. What has ended since is taken to be as large as
 * the rest, or as the limits have room for.
 */
export function mayBeOver(left: Left, counted: number, limits: HistoryLimits, by = 0): boolean {
  const since = Math.max(0, counted - left.counted);
  const mean = Math.max(left.bytes / Math.max(1, left.turns), limits.bytes / Math.max(1, limits.turns));
  const turns = left.turns + since;
  const bytes = left.bytes + since * mean;
  // Without new turns only the limits can have changed: they hold at once.
  const allowed = (limit: number) => limit + (since > 0 ? Math.floor(limit * by) : 0);
  return turns > allowed(limits.turns) || (turns > 1 && bytes > allowed(limits.bytes));
}

/**
 * Milliseconds until a session that has changed is worth a look, `agoMs` after the last one. What was stored since is not
 * old enough to go before that is as long ago; what was there already and has been superseded waits for as long.
 */
export function dueIn(left: Left, agoMs: number, counted: number, limits: HistoryLimits): number {
  return mayBeOver(left, counted, limits, SLACK) ? 0 : Math.max(0, MIN_AGE_MS - agoMs);
}
