import type { SessionStatus } from '../../core/resources/session.ts';
import type { Subject } from '../settings/subject.ts';
import { type ConditionValue, conditionValue } from './conditions.ts';

/**
 * Condition `Enterable`: whether clients get into the session's pod. It is False while another process has the name of the runner's
 * socket, as the runner reports; undefined where that never was so, and before the runner has answered this leader.
 */
export function enterable(
  { world: { link, session } }: Pick<Subject, 'world'>,
  next: SessionStatus,
): ConditionValue | undefined {
  const was = session.status?.conditions?.some(({ type }) => type === 'Enterable');
  if (!next.podName) return was ? conditionValue('Unknown', 'NotBound') : undefined;
  if (link?.closedToClients) return conditionValue('False', 'SocketTaken');
  return was && link?.answered ? conditionValue('True', 'Enterable') : undefined;
}
