import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_RUNNER, LABEL_TURN_UID } from '../../core/resources/names.ts';
import { ownContainer } from '../world/pod-status.ts';
import { isProblem } from './effective.ts';
import type { Subject } from './subject.ts';

/** Sessions whose class has runner None: a pod for every turn, and nobody in it to talk to. */

/** Whether the session runs so: as its pod was made, else as the next one will be. */
export function isRunnerless({ world: { pod, memory, session }, settings }: Subject): boolean {
  const made = pod ?? (session.status?.podName === memory.lastPod?.metadata.name ? memory.lastPod : undefined);
  if (made) return isRunnerlessPod(made);
  return !isProblem(settings) && settings.runner === 'None';
}

export function isRunnerlessPod(pod: StoredPod): boolean {
  return pod.metadata.labels?.[LABEL_RUNNER] === 'None';
}

/** The uid of the turn that the pod was made for. */
export function turnOf(pod: StoredPod): string | undefined {
  return pod.metadata.labels?.[LABEL_TURN_UID];
}

/** Whether the pod waits for its turn to be written Running. */
export function isGated({ spec }: StoredPod): boolean {
  return Boolean(spec.schedulingGates?.length);
}

/** Whether the turn's program can have run in the pod: it was let run, or nobody knows that it was not. */
export function wasLetRun({ world: { pod, memory } }: Subject, podUID: string | undefined): boolean {
  const seen = [pod, memory.lastPod].find((known) => known?.metadata.uid === podUID);
  return !seen || !isGated(seen) || memory.letRun?.podUID === podUID;
}

/** Whether its program ended of its own accord: its exit code says something. */
export function endedByItself(pod: StoredPod): boolean {
  const { metadata, status } = pod;
  const terminated = ownContainer(pod)?.state?.terminated;
  const disrupted = status?.conditions?.some(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True');
  // 137 is SIGKILL, which only others send; the kubelet calls what a restarted node has forgotten ContainerStatusUnknown.
  const outside = metadata.deletionTimestamp || status?.reason || disrupted || terminated?.exitCode === 137;
  return terminated !== undefined && !outside && terminated.reason !== 'ContainerStatusUnknown';
}
