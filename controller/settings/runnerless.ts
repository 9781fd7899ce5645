import type { StoredPod } from '../../core/kube/builtin.ts';
import { LABEL_RUNNER, LABEL_TURN_UID } from '../../core/resources/names.ts';
import { ownContainer } from '../observed/pod-status.ts';
import { isProblem } from './effective.ts';
import type { Subject } from './subject.ts';

/** Sessions whose class has runner None: each turn gets a pod of its own, without a runner. */

/** Reports whether the session is runnerless: as its pod was made, else as its next pod will be. */
export function isRunnerless({ world: { pod, memory, session }, settings }: Subject): boolean {
  const made =
    pod ??
    (session.status?.podName === memory.incarnation.lastPod?.metadata.name ? memory.incarnation.lastPod : undefined);
  if (made) return isRunnerlessPod(made);
  return !isProblem(settings) && settings.runner === 'None';
}

export function isRunnerlessPod(pod: StoredPod): boolean {
  return pod.metadata.labels?.[LABEL_RUNNER] === 'None';
}

/** UID of the pod's turn. */
export function turnOf(pod: StoredPod): string | undefined {
  return pod.metadata.labels?.[LABEL_TURN_UID];
}

/** Reports whether the pod waits behind its scheduling gate for its turn to be written Running. */
export function isGated({ spec }: StoredPod): boolean {
  return Boolean(spec.schedulingGates?.length);
}

/** Reports whether the turn's program can have run in the pod: its gate was removed, or is not known to have stayed. */
export function wasLetRun({ world: { pod, memory } }: Subject, podUID: string | undefined): boolean {
  const seen = [pod, memory.incarnation.lastPod].find((known) => known?.metadata.uid === podUID);
  return !seen || !isGated(seen) || memory.incarnation.letRun?.podUID === podUID;
}

/** Reports whether the pod's program ended by itself, so that its exit code means something. */
export function endedByItself(pod: StoredPod): boolean {
  const { metadata, status } = pod;
  const terminated = ownContainer(pod)?.state?.terminated;
  const disrupted = status?.conditions?.some(({ type, status: is }) => type === 'DisruptionTarget' && is === 'True');
  // Exit code 137 is SIGKILL, which comes from outside; the kubelet reports a container lost in a node restart as
  // ContainerStatusUnknown.
  const outside = metadata.deletionTimestamp || status?.reason || disrupted || terminated?.exitCode === 137;
  return terminated !== undefined && !outside && terminated.reason !== 'ContainerStatusUnknown';
}
