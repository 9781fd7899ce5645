import { reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { World } from '../world/world.ts';
import type { ConditionValue } from './conditions.ts';

/**
 * Condition `Outdated`: whether the pod was made from an older generation of the class; undefined for a session that
 * never was outdated.
 */
export function outdated({ session, class: sessionClass }: World, next: SessionStatus): ConditionValue | undefined {
  const madeFrom = next.podName ? next.classGeneration : undefined;
  const present = sessionClass?.metadata.generation;
  if (madeFrom !== undefined && present !== undefined && madeFrom < present) {
    return { status: 'True', reason: 'ClassChanged', message: reasons.ClassChanged };
  }
  const was = session.status?.conditions?.some(({ type }) => type === 'Outdated');
  return was ? { status: 'False', reason: 'UpToDate', message: reasons.UpToDate } : undefined;
}
