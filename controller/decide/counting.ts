import { isDeepStrictEqual } from 'node:util';
import type { SessionStatus } from '../../core/resources/session.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { CachedTurn } from '../world/world.ts';

/** Minimum time between two writes of a session that only count turns, milliseconds. */
const COUNT_EVERY_MS = 1000;

export interface Counting {
  /** Status as stored, and as decided. */
  before: SessionStatus;
  next: SessionStatus;
  /** Turns that were decided upon, and the uids of those that exist. */
  turns: readonly CachedTurn[];
  present: ReadonlySet<string>;
  /** Time of the last write that counted a turn, and now; monotonic milliseconds. */
  countedAt: number | undefined;
  monotonic: number;
}

/**
 * Milliseconds for which the status may wait to be written. A status that only counts ended turns waits, so that one write
 * counts all turns of a burst: the turns themselves tell how they ended. Every other change is written at once. A turn that
 * has been deleted is counted at once too, because no later leader could count it.
 */
export function countsWaitMs({ before, next, turns, present, countedAt, monotonic }: Counting): number {
  if (countedAt === undefined || isDeepStrictEqual(before.lastTurn, next.lastTurn)) return 0;
  if (turns.some(({ metadata, status }) => isTerminal(status.phase) && !present.has(metadata.uid))) return 0;
  const { turns: totals, lastTurn, lastActiveAt } = next;
  if (!isDeepStrictEqual({ ...before, turns: totals, lastTurn, lastActiveAt }, next)) return 0;
  return Math.max(0, countedAt + COUNT_EVERY_MS - monotonic);
}
