import { defined } from '../../core/defined.ts';
import { type Reason, reasons } from '../../core/resources/reasons.ts';
import type { Protection } from '../../core/resources/sandbox.ts';
import type { Condition } from '../../core/resources/schema.ts';

export type SessionConditionType =
  | 'Admitted'
  | 'Ready'
  | 'StatePersisted'
  | 'ApprovalPending'
  | 'Suspended'
  | 'Outdated'
  | 'SecretsHidden'
  | 'Enterable'
  | Protection
  | 'Finished';
export type TurnConditionType = 'Running' | 'Finished';

export interface ConditionValue {
  status: 'True' | 'False' | 'Unknown';
  reason: Reason;
  message: string;
}

/** A value of a condition. `message`: that of the reason, unless there is more to say. */
export function conditionValue(
  status: ConditionValue['status'],
  reason: Reason,
  message: string = reasons[reason],
): ConditionValue {
  return { status, reason, message };
}

/**
 * The conditions with one of them set. Its lastTransitionTime moves only when its status changes, as everywhere in
 * Kubernetes. Messages are cut at the schema's 4096 characters.
 */
export function withCondition(
  conditions: Condition[] | undefined,
  type: SessionConditionType | TurnConditionType,
  value: ConditionValue,
  now: number,
  observedGeneration?: number,
): Condition[] {
  const before = conditions?.find((condition) => condition.type === type);
  const next: Condition = {
    type,
    status: value.status,
    reason: value.reason,
    message: value.message.slice(0, 4096),
    lastTransitionTime: before?.status === value.status ? before.lastTransitionTime : new Date(now).toISOString(),
    ...defined({ observedGeneration }),
  };
  if (!before) return [...(conditions ?? []), next];
  return (conditions ?? []).map((condition) => (condition.type === type ? next : condition));
}

/**
 * The conditions with `now` as the transition time of those whose status differs from `before`: effects since the
 * decision may have taken long, and timeouts count from these times.
 */
export function changedAt(conditions: Condition[], before: Condition[] | undefined, now: number): Condition[] {
  return conditions.map((condition) => {
    const isAsBefore = before?.find(({ type }) => type === condition.type)?.status === condition.status;
    return isAsBefore ? condition : { ...condition, lastTransitionTime: new Date(now).toISOString() };
  });
}
