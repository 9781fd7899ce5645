import type { SessionStatus } from '../../core/resources/session.ts';
import type { Problem } from '../observed/world.ts';
import { keepsState } from '../settings/persistence.ts';
import type { Subject } from '../settings/subject.ts';
import { type ConditionValue, conditionValue } from './conditions.ts';
import { FORMER_STATE, isOfFormerUid } from './former-state.ts';

/** Condition `StatePersisted`: whether the state that the session has reached is stored. */
export function statePersisted(subject: Pick<Subject, 'world' | 'turns'>, next: SessionStatus): ConditionValue {
  const { session, class: sessionClass, memory } = subject.world;
  // The memory is about the incarnation in the written status. The next one, which is about to begin, has no problem yet.
  const known = next.incarnation === session.status?.incarnation ? memory.incarnation : {};
  // A lost pod's unstored state does not matter any more: the session does not go on from it.
  const inPod = next.podName ? (known.suspensionFailed?.problem ?? tooLarge(subject, next)) : undefined;
  const unstored = known.commitProblem ?? inPod;
  if (unstored) return conditionValue('False', unstored.reason, unstored.message);
  if (!keepsState(session.spec, sessionClass)) return conditionValue('False', 'PersistenceOff');
  if (!next.state) return conditionValue('Unknown', 'NoState');
  if (isOfFormerUid(session, next)) return conditionValue('False', 'StateUnavailable', FORMER_STATE);
  const { incarnation, bytes } = next.state;
  return conditionValue('True', 'StateStored', `Incarnation ${incarnation}, ${bytes} bytes.`);
}

/**
 * Returns a problem if the last turn of this pod left more state than may be stored. This pod continues from that state; a
 * later pod would not.
 */
function tooLarge(
  { world: { session }, turns }: Pick<Subject, 'world' | 'turns'>,
  next: SessionStatus,
): Problem | undefined {
  const last = turns.uncounted.findLast(({ status }) => status.podUID !== undefined && status.podUID === next.podUID);
  const conditions = last ? last.status.conditions : session.status?.conditions;
  const said = conditions?.find(({ type }) => type === (last ? 'Finished' : 'StatePersisted'));
  return said?.reason === 'StateTooLarge' ? { reason: said.reason, message: said.message } : undefined;
}
