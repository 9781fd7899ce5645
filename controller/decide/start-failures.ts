import type { SessionStatus } from '../../core/resources/session.ts';
import { isParked } from '../observed/approvals.ts';
import { isFromPool } from '../observed/session-pods.ts';
import type { Problem } from '../observed/world.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { nextAttemptAt } from '../status/turn-status.ts';
import type { Draft } from './draft.ts';
import { causeOf } from './loss.ts';
import { lacksItsTurn } from './missing-turn.ts';
import { isFinished, suspendRequest } from './suspend-reason.ts';

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
  if (isRunnerless(draft) || lacksItsTurn(draft)) return false;
  const { incarnation = 0, startFailures, runnerVersion } = session.status ?? {};
  const refused = (startFailures ?? draft.startFailed)?.reason === 'QuotaExceeded' && !runnerVersion;
  const request = suspendRequest(draft);
  return (incarnation === 0 || refused) && (request === 'None' || request === 'Void');
}

/** The loss of a pod of a pool, which counts as no failed start; `why` is a clause that follows the pod's name. */
export function claimLost(podName: string | undefined, why: string): Problem {
  return { reason: 'ClaimLost', message: `Pod ${podName} of a pool ${why}; the session starts with a pod of its own.` };
}

/** Records that the start of the present incarnation failed; the status counts it once. */
export function recordStartFailure(draft: Draft, podUID: string): void {
  const { reason, message } = causeOf(draft, podUID);
  const name = draft.world.session.status?.podName;
  if (isFromPool(name)) {
    draft.startFailed = claimLost(name, message);
    return;
  }
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
    // Waits for quota, lost claims and failures of the pod are counted apart.
    const kindOf = (reason = '') => (reason === 'QuotaExceeded' || reason === 'ClaimLost' ? reason : 'Pod');
    const sameKind = before !== undefined && kindOf(before.reason) === kindOf(failed.reason);
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
  // A lost claim says nothing against a pod of the session's own.
  const isPaused = failures && failures.reason !== 'ClaimLost';
  const pause = isPaused && Math.min(START_BACKOFF_MS * 2 ** failures.count, MAX_START_BACKOFF_MS);
  const first = turns.live[0];
  return Math.max(failures && pause ? Date.parse(failures.at) + pause : 0, first ? nextAttemptAt(first) : 0);
}
