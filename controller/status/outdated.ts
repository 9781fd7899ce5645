import { type Reason, reasons } from '../../core/resources/reasons.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import { isRunnerOutdated } from '../observed/runner-outdated.ts';
import { isProblem } from '../settings/effective.ts';
import { settingsDigest } from '../settings/session-digest.ts';
import type { Subject } from '../settings/subject.ts';
import { type ConditionValue, conditionValue } from './conditions.ts';

/**
 * Condition `Outdated`. It is True if the pod's runner speaks another protocol, or if the pod was made otherwise than now: with
 * other settings of the session, from an older generation of the class, or with other files of a ConfigMap. Undefined for a
 * session that never was outdated.
 */
export function outdated(
  { world, settings }: Pick<Subject, 'world' | 'settings'>,
  next: SessionStatus,
): ConditionValue | undefined {
  const { session, class: sessionClass, agentFiles, link, installation } = world;
  const before = session.status?.conditions?.find(({ type }) => type === 'Outdated');
  if (next.podName && isRunnerOutdated(world)) {
    const message = `${reasons.RunnerOutdated} The runner speaks protocol ${link?.protocol}, the controller ${installation.protocol}.`;
    return conditionValue('True', 'RunnerOutdated', message);
  }
  // A runner that does not answer is still the one that it was.
  if (next.podName && link?.phase !== 'Bound' && before?.reason === 'RunnerOutdated') {
    return conditionValue(before.status, before.reason as Reason, before.message);
  }
  if (next.podName && next.settingsDigest && next.settingsDigest !== settingsDigest(session.spec)) {
    const cannot = isProblem(settings) ? ` No pod can be made with them: ${settings.message}` : '';
    return conditionValue('True', 'SessionChanged', `${reasons.SessionChanged}${cannot}`);
  }
  const madeFrom = next.podName ? next.classGeneration : undefined;
  const present = sessionClass?.metadata.generation;
  if (madeFrom !== undefined && present !== undefined && madeFrom < present) {
    return conditionValue('True', 'ClassChanged');
  }
  const changed =
    next.podName &&
    next.agentFiles?.find(({ configMap, digest }) => agentFiles && agentFiles.get(configMap) !== digest);
  if (agentFiles && changed) {
    const what = agentFiles.has(changed.configMap) ? 'was changed' : 'is gone';
    const message = `ConfigMap "${changed.configMap}" of agent.files ${what} after the pod took its files; the session's next incarnation takes them anew.`;
    return conditionValue('True', 'AgentFilesChanged', message);
  }
  return before ? conditionValue('False', 'UpToDate') : undefined;
}
