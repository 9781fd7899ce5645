import { PROTECTIONS } from '../../../core/resources/sandbox.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { waitingTurn } from '../../observed/approvals.ts';
import {
  type ConditionValue,
  conditionValue,
  type SessionConditionType,
  withCondition,
} from '../../status/conditions.ts';
import { enterable } from '../../status/enterable.ts';
import { outdated } from '../../status/outdated.ts';
import { protection } from '../../status/protection.ts';
import { secretsHidden } from '../../status/secrets-hidden.ts';
import { statePersisted } from '../../status/state-persisted.ts';
import type { Draft } from '../draft.ts';
import { admitted } from './admitted.ts';
import { finished } from './finished.ts';
import { asks, ready } from './ready.ts';
import { suspended } from './suspended.ts';

/**
 * Value of a condition in the next status, which is complete but for its conditions; undefined: the condition stays as it is.
 * `readyValue`: the value of `Ready`; other conditions share its reason.
 */
type Condition = (draft: Draft, next: SessionStatus, readyValue: ConditionValue) => ConditionValue | undefined;

/** The conditions of a session, in the order in which a new one gets them. */
const CONDITIONS: readonly [SessionConditionType, Condition][] = [
  ['Admitted', admitted],
  ['Ready', (_draft, _next, readyValue) => readyValue],
  ['StatePersisted', statePersisted],
  ['Suspended', suspended],
  ['ApprovalPending', approvalPending],
  ['Outdated', outdated],
  ...PROTECTIONS.map((type): [SessionConditionType, Condition] => [
    type,
    ({ world }, next) => protection(type, world, next),
  ]),
  ['SecretsHidden', secretsHidden],
  ['Enterable', enterable],
  ['Finished', finished],
];

/** The conditions of the next status; it has its phase. */
export function sessionConditions(draft: Draft, next: SessionStatus): SessionStatus['conditions'] {
  const { session, now } = draft.world;
  let conditions = session.status?.conditions;
  const readyValue = ready(draft, next);
  for (const [type, condition] of CONDITIONS) {
    const value = condition(draft, next, readyValue);
    if (value) conditions = withCondition(conditions, type, value, now, session.metadata.generation);
  }
  return conditions;
}

/** Condition `ApprovalPending`: a turn waits for a decision of a person; undefined for a session that never asked. */
function approvalPending(draft: Draft): ConditionValue | undefined {
  const waiting = waitingTurn(draft.turns);
  if (waiting) return conditionValue('True', 'AwaitingApproval', asks(waiting));
  const hasAsked = draft.world.session.status?.conditions?.some(({ type }) => type === 'ApprovalPending');
  return hasAsked ? conditionValue('False', 'NoRequest') : undefined;
}
