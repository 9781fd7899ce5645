import { reasons } from '../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { type ConditionValue, conditionValue } from '../../status/conditions.ts';
import { FORMER_STATE, isOfFormerUid } from '../../status/former-state.ts';
import type { Draft } from '../draft.ts';
import { whySuspended } from '../suspend-reason.ts';

/** Condition `Suspended`: the session rests without a pod, or gives its pod up to that end. */
export function suspended(draft: Draft, next: SessionStatus, readyValue: ConditionValue): ConditionValue {
  if (!next.podName && (next.phase === 'Suspended' || next.phase === 'AwaitingApproval')) return rests(draft, next);
  if (next.phase === 'Suspending') return suspending(draft);
  return conditionValue('False', readyValue.reason);
}

/** The value while the pod is given up. `Ready` may say something else then, for example that the pod does not end. */
export function suspending(draft: Draft): ConditionValue {
  const why = whySuspended(draft);
  const message = why ? `${reasons.Suspending} ${why}` : whileSuspending(draft)?.message;
  return conditionValue('False', 'Suspending', message);
}

/** The condition keeps the reason of the suspension. */
function rests(draft: Draft, next: SessionStatus): ConditionValue {
  const { session, preemptFor } = draft.world;
  const before = session.status?.conditions?.find(({ type }) => type === 'Suspended');
  const wasPreempted = before?.status === 'True' ? before.reason === 'Preempted' : preemptFor !== undefined;
  const reason = session.spec.suspend ? 'Held' : wasPreempted ? 'Preempted' : 'Suspended';
  if (isOfFormerUid(session, next)) return conditionValue('True', reason, `The session has no pod. ${FORMER_STATE}`);
  if (before?.status === 'True' && before.reason === reason) return conditionValue('True', reason, before.message);
  if (reason === 'Preempted')
    return conditionValue('True', reason, `${reasons.Preempted} It was preempted for ${preemptFor?.for}.`);
  const why = whileSuspending(draft)?.message.slice(reasons.Suspending.length) ?? '';
  return conditionValue('True', reason, `${reasons[reason]}${why}`);
}

/** The written condition, if it says that the pod is given up. */
function whileSuspending({ world: { session } }: Draft) {
  return session.status?.conditions?.find(({ type, reason }) => type === 'Suspended' && reason === 'Suspending');
}
