import { isDeepStrictEqual } from 'node:util';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { CachedTurn } from '../observed/world.ts';

/** Minimum time between two writes of a session that only count turns, milliseconds. */
const COUNT_EVERY_MS = 1000;
/** Time for which a session does not show what has changed as its runner was given a turn: a short turn ends before. */
const GIVEN_MS = 250;
/** Time for which a session that has nothing else to say keeps the version of a runner that is being bound. */
const BINDING_MS = 1000;
/** Fields that count turns. */
const COUNTS: ReadonlySet<keyof SessionStatus> = new Set(['turns', 'lastTurn', 'lastActiveAt']);
/** Fields that only show what other objects say as well. */
const SHOWN: ReadonlySet<keyof SessionStatus> = new Set([
  'phase',
  'reason',
  'conditions',
  'runnerVersion',
  'lastActiveAt',
]);

export interface WriteWait {
  /** Status as stored, and as decided. */
  before: SessionStatus;
  next: SessionStatus;
  /** Turns that `next` counts and `before` does not, and the uids of the session's turns that exist. */
  counted: readonly CachedTurn[];
  present: ReadonlySet<string>;
  /** Time at which a turn was last given to the runner, time of the last write that counted one, and now; monotonic milliseconds. */
  gaveAt: number | undefined;
  countedAt: number | undefined;
  monotonic: number;
  /** Milliseconds since the runner was last sent its binding. */
  boundMsAgo: number | undefined;
}

/**
 * Milliseconds for which the status of a session may wait to be written, 0 for none. Three changes may wait, because a later
 * write includes them or another object shows them already. These are the counts of turns that end in a burst, and the version of
 * a runner that is about to be ready. The third is that the session is Ready when it gets a turn at once. Every other change is
 * written at once.
 */
export function writeWaitMs(wait: WriteWait): number {
  const { before, next } = wait;
  const [countsMs, readyMs] = [countsWaitMs(wait), readyWaitMs(wait)];
  const fields = new Set([...Object.keys(before), ...Object.keys(next)] as (keyof SessionStatus)[]);
  const waits = [...fields]
    .filter((field) => !isDeepStrictEqual(before[field], next[field]))
    .map((field) => {
      if (countsMs > 0 && COUNTS.has(field)) return countsMs;
      if (SHOWN.has(field) && readyMs > 0) return readyMs;
      return field === 'runnerVersion' ? bindingWaitMs(wait) : 0;
    });
  return Math.min(...waits);
}

/**
 * A turn that has been deleted is counted at once, because no later leader could count it, and so is the first turn that this
 * leader counts.
 */
function countsWaitMs({ counted, present, countedAt, monotonic }: WriteWait): number {
  if (countedAt === undefined || counted.length === 0) return 0;
  if (counted.some(({ metadata }) => !present.has(metadata.uid))) return 0;
  return Math.max(0, countedAt + COUNT_EVERY_MS - monotonic);
}

function readyWaitMs({ before, next, gaveAt, monotonic }: WriteWait): number {
  if (gaveAt === undefined || before.phase !== 'Starting' || next.phase !== 'Ready') return 0;
  return Math.max(0, gaveAt + GIVEN_MS - monotonic);
}

function bindingWaitMs({ before, next, boundMsAgo = BINDING_MS }: WriteWait): number {
  return before.phase === 'Starting' && next.phase === 'Starting'
    ? Math.min(BINDING_MS, Math.max(0, BINDING_MS - boundMsAgo))
    : 0;
}
