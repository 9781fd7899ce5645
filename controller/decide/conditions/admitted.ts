import type { Reason } from '../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { isProblem } from '../../settings/effective.ts';
import { type ConditionValue, conditionValue } from '../../status/conditions.ts';
import { type Draft, problemOf } from '../draft.ts';

/** Condition `Admitted`: the session holds a slot, or why it holds none. */
export function admitted(draft: Draft, next: SessionStatus): ConditionValue {
  const { session } = draft.world;
  if (next.podName) return conditionValue('True', 'Admitted', `Incarnation ${next.incarnation} holds a running slot.`);
  if (isProblem(draft.settings)) return conditionValue('False', draft.settings.reason, draft.settings.message);
  const problem = problemOf(draft);
  if (problem && problem.reason === next.queue?.reason) return conditionValue('False', problem.reason, problem.message);
  if (session.spec.suspend) return conditionValue('False', 'Held');
  const { startFailures } = next;
  if (startFailures) return conditionValue('False', startFailures.reason as Reason, startFailures.message);
  return conditionValue('False', 'NotNeeded');
}
