import { type Reason, reasons } from '../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { type ConditionValue, conditionValue } from '../../status/conditions.ts';
import { asLast } from '../counted-turns.ts';
import type { Draft } from '../draft.ts';
import { hadItsTurn } from '../suspend-reason.ts';

/** Condition `Finished`: how the session ended; undefined for one that takes turns as long as it lives. */
export function finished(draft: Draft, next: SessionStatus, readyValue: ConditionValue): ConditionValue | undefined {
  if (next.phase === 'Finished') return conditionValue('True', ...howEnded(draft, next));
  return draft.world.session.spec.turns === 'One' ? conditionValue('False', readyValue.reason) : undefined;
}

/** Reason and message of the session's end: that of its only turn, or of its lifetime. */
export function howEnded(draft: Draft, next: SessionStatus): [Reason, string] {
  if (!hadItsTurn(draft)) return ['LifetimeExceeded', reasons.LifetimeExceeded];
  // A turn that is not counted yet has ended all the same.
  const [uncounted] = draft.turns.uncounted;
  const last = next.lastTurn ?? (uncounted && asLast(uncounted));
  if (last?.phase === 'Succeeded') return ['RunSucceeded', reasons.RunSucceeded];
  // A turn that an earlier release counted has no code.
  const { code = '' } = last ?? {};
  const reason = Object.hasOwn(reasons, code) ? (code as Reason) : 'RunFailed';
  return [reason, `The turn ended ${last?.phase}. ${reasons[reason]}`];
}
