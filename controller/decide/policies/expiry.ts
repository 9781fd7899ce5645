import type { StoredSessionClass } from '../../../core/resources/kinds.ts';
import { retention } from '../../settings/retention.ts';
import type { CachedSession } from '../../world/world.ts';
import type { Expiry } from '../actions.ts';
import { type Draft, type Policy, wake } from '../draft.ts';

/** A deletion that was not carried out is thought of again after this time. */
const AGAIN_MS = 60_000;

/** A session that has been finished or suspended for long, with no turn left to do, is deleted after a second look. */
export const expire: Policy = (draft) => {
  const { session, class: sessionClass, now } = draft.world;
  const expiry = rests(draft) ? expiryOf(session, sessionClass) : undefined;
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

/** By what its status says: a session that finishes or is suspended in this pass has not had its time yet. */
function expiryOf(session: CachedSession, sessionClass: StoredSessionClass | undefined): Expiry | undefined {
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
  const active = Date.parse(lastActiveAt ?? '') || 0;
  return { field: 'ttlAfterSuspended', since: Math.max(suspended, active), ttlMs: suspendedMs };
}
