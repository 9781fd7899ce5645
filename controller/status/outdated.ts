import { reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { World } from '../world/world.ts';
import type { ConditionValue } from './conditions.ts';

/**
 * Condition `Outdated`: whether the pod was made from an older generation of the class, or has files of a ConfigMap that was
 * changed since; undefined for a session that never was outdated.
 */
export function outdated(
  { session, class: sessionClass, agentFiles }: World,
  next: SessionStatus,
): ConditionValue | undefined {
  const madeFrom = next.podName ? next.classGeneration : undefined;
  const present = sessionClass?.metadata.generation;
  if (madeFrom !== undefined && present !== undefined && madeFrom < present) {
    return { status: 'True', reason: 'ClassChanged', message: reasons.ClassChanged };
  }
  const changed =
    next.podName &&
    next.agentFiles?.find(({ configMap, digest }) => agentFiles && agentFiles.get(configMap) !== digest);
  if (agentFiles && changed) {
    const what = agentFiles.has(changed.configMap) ? 'was changed' : 'is gone';
    const message = `ConfigMap "${changed.configMap}" of agent.files ${what} after the pod took its files; the session's next incarnation takes them anew.`;
    return { status: 'True', reason: 'AgentFilesChanged', message };
  }
  const was = session.status?.conditions?.some(({ type }) => type === 'Outdated');
  return was ? { status: 'False', reason: 'UpToDate', message: reasons.UpToDate } : undefined;
}
