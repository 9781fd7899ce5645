import type { StoredSessionClass } from '../../../core/resources/kinds.ts';
import { touchedAt } from '../../observed/activity.ts';
import type { CachedSession } from '../../observed/world.ts';
import { retention } from '../../settings/retention.ts';
import type { Expiry } from '../actions.ts';
import { type Draft, type Policy, wake } from '../draft.ts';

/** Time after which an expiry that was not carried out is tried again. */
const AGAIN_MS = 60_000;

/** Deletes a session that has been finished or suspended for long and has no turn left, after a live check. */
export const expire: Policy = (draft) => {
  const { session, class: sessionClass, now } = draft.world;
  const expiry = rests(draft) ? expiryOf(session, sessionClass, now) : undefined;
  if (!expiry) return undefined;
  const at = expiry.since + expiry.ttlMs;
  if (now < at) wake(draft, at);
  else {
    draft.actions.push({ do: 'Expire', expiry });
    wake(draft, now + AGAIN_MS);
  }
  return undefined;
};

function rests({ turns: { live, ownerless, uncounted } }: Draft): boolean {
  return live.length + ownerless.length + uncounted.length === 0;
}

/** Expiry by the written status: a session that finishes or is suspended in this reconcile has not had its time yet. */
function expiryOf(
  session: CachedSession,
  sessionClass: StoredSessionClass | undefined,
  now: number,
): Expiry | undefined {
  const { phase, conditions, podName, lastActiveAt } = session.status ?? {};
  const since = (type: 'Finished' | 'Suspended') => {
    const condition = conditions?.find((each) => each.type === type && each.status === 'True');
    return condition && Date.parse(condition.lastTransitionTime);
  };
  const finished = phase === 'Finished' ? since('Finished') : undefined;
  const { finishedMs, suspendedMs } = retention(session, sessionClass);
  if (finished !== undefined) return { field: 'ttlAfterFinished', since: finished, ttlMs: finishedMs };
  const suspended = phase === 'Suspended' && !podName ? since('Suspended') : undefined;
  if (suspended === undefined) return undefined;
  // A touch may be newer than the status.
  const active = Math.max(Date.parse(lastActiveAt ?? '') || 0, touchedAt(session, now));
  return { field: 'ttlAfterSuspended', since: Math.max(suspended, active), ttlMs: suspendedMs };
}
