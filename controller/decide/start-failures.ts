import type { SessionStatus } from '../../core/resources/session.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { nextAttemptAt } from '../status/turn-status.ts';
import { isParked } from '../world/approvals.ts';
import type { Draft } from './draft.ts';
import { causeOf } from './loss.ts';
import { isFinished, suspendRequest } from './suspend-reason.ts';

/** Starts that failed in a row: counted in the status, so that a new leader does not begin to count anew. */

const START_BACKOFF_MS = 500;
const MAX_START_BACKOFF_MS = 60_000;

/** A new session gets its pod at once, or when a quota lets it; a suspended one only for a turn that is not held. */
export function wanted(draft: Draft): boolean {
  const { session } = draft.world;
  if (session.spec.suspend || isFinished(draft) || isProblem(draft.settings)) return false;
  if (draft.turns.live.length > 0) return !isParked(draft);
  // A pod without a runner is there for a turn.
  if (isRunnerless(draft)) return false;
  const { incarnation = 0, startFailures, runnerVersion } = session.status ?? {};
  const refused = (startFailures ?? draft.startFailed)?.reason === 'QuotaExceeded' && !runnerVersion;
  const request = suspendRequest(draft);
  return (incarnation === 0 || refused) && (request === 'None' || request === 'Void');
}

/** The start of the present incarnation failed: the status will count it, once. */
export function recordStartFailure(draft: Draft, podUID: string): void {
  const { reason, message } = causeOf(draft, podUID);
  const name = draft.world.session.status?.podName;
  draft.startFailed = { reason, message: `Pod ${name} ${message} before it took a turn.` };
}

/** `status.startFailures` as it is to be: with the failure of this pass, without those that are over. */
export function withFailedStart(draft: Draft): SessionStatus['startFailures'] {
  const { session, link, now } = draft.world;
  const before = session.status?.startFailures;
  if (link?.phase === 'Bound') return undefined;
  const failed = wanted(draft) ? draft.startFailed : undefined;
  const incarnation = session.status?.incarnation ?? 0;
  if (failed && before?.incarnation !== incarnation) {
    const at = new Date(now).toISOString();
    // Waiting for a quota is no failure of the pod's, nor the other way round.
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
  // What nobody waits for begins anew when somebody does.
  return wanted(draft) ? before : undefined;
}

/** When the next pod may be tried, milliseconds since the epoch. */
export function nextStart({ world: { session }, turns }: Draft): number {
  const failures = session.status?.startFailures;
  const pause = failures && Math.min(START_BACKOFF_MS * 2 ** failures.count, MAX_START_BACKOFF_MS);
  const first = turns.live[0];
  return Math.max(failures && pause ? Date.parse(failures.at) + pause : 0, first ? nextAttemptAt(first) : 0);
}
