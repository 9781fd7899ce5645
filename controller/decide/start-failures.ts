import type { SessionStatus } from '../../core/resources/session.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { nextAttemptAt } from '../status/turn-status.ts';
import { isParked } from '../world/approvals.ts';
import type { Draft } from './draft.ts';
import { causeOf } from './loss.ts';
import { isFinished, suspendRequest } from './suspend-reason.ts';
import { isTurnless } from './turnless.ts';

/** Consecutive failed starts, counted in the status, so that a new leader goes on counting. */

const START_BACKOFF_MS = 500;
const MAX_START_BACKOFF_MS = 60_000;

/**
 * Reports whether the session needs a pod: a new session does at once, or when a quota lets it; a suspended one only
 * for a turn that is not held.
 */
export function wanted(draft: Draft): boolean {
  const { session } = draft.world;
  if (session.spec.suspend || isFinished(draft) || isProblem(draft.settings)) return false;
  if (draft.turns.live.length > 0) return !isParked(draft);
  // A runnerless pod exists only for a turn.
  if (isRunnerless(draft) || isTurnless(draft)) return false;
  const { incarnation = 0, startFailures, runnerVersion } = session.status ?? {};
  const refused = (startFailures ?? draft.startFailed)?.reason === 'QuotaExceeded' && !runnerVersion;
  const request = suspendRequest(draft);
  return (incarnation === 0 || refused) && (request === 'None' || request === 'Void');
}

/** Records that the start of the present incarnation failed; the status counts it once. */
export function recordStartFailure(draft: Draft, podUID: string): void {
  const { reason, message } = causeOf(draft, podUID);
  const name = draft.world.session.status?.podName;
  draft.startFailed = { reason, message: `Pod ${name} ${message} before it took a turn.` };
}

/** The next `status.startFailures`: with the failure of this reconcile, without those that are over. */
export function withFailedStart(draft: Draft): SessionStatus['startFailures'] {
  const { session, link, now } = draft.world;
  const before = session.status?.startFailures;
  if (link?.phase === 'Bound') return undefined;
  const failed = wanted(draft) ? draft.startFailed : undefined;
  const incarnation = session.status?.incarnation ?? 0;
  if (failed && before?.incarnation !== incarnation) {
    const at = new Date(now).toISOString();
    // A wait for quota and failures of the pod are counted apart.
    const sameKind = (before?.reason === 'QuotaExceeded') === (failed.reason === 'QuotaExceeded');
    return {
      count: sameKind ? (before?.count ?? 0) + 1 : 1,
      reason: failed.reason,
      message: failed.message.slice(0, 1024),
      since: sameKind ? (before?.since ?? at) : at,
      at,
      incarnation,
    };
  }
  // The count is dropped while the session needs no pod, and starts anew when it does.
  return wanted(draft) ? before : undefined;
}

/** Earliest time of the next start, milliseconds since the epoch. */
export function nextStart({ world: { session }, turns }: Draft): number {
  const failures = session.status?.startFailures;
  const pause = failures && Math.min(START_BACKOFF_MS * 2 ** failures.count, MAX_START_BACKOFF_MS);
  const first = turns.live[0];
  return Math.max(failures && pause ? Date.parse(failures.at) + pause : 0, first ? nextAttemptAt(first) : 0);
}
