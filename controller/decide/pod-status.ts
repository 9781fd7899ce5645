import type { Pod } from '../../core/kube/builtin.ts';
import type { Problem } from '../world.ts';

/** The one place that maps what Kubernetes reports of a pod to Berth's words. */

/** Its container has ended; it will not run again (restartPolicy Never). */
export function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
}

/** Whether the container has ever been started. */
export function startedContainer(pod: Pod): boolean {
  const state = pod.status?.containerStatuses?.[0]?.state;
  return Boolean(state?.running || state?.terminated);
}

// The waiting reasons of the kubelet (pkg/kubelet/images, pkg/kubelet/kuberuntime).
const IMAGE = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'RegistryUnavailable'];
const CONFIG = ['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'];

/** What keeps a pod from running, if Kubernetes says something does. */
export function podProblem(pod: Pod): Problem | undefined {
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting;
  const image = pod.spec.containers[0]?.image;
  if (waiting?.reason && IMAGE.includes(waiting.reason)) {
    return {
      reason: 'ImageUnavailable',
      message: `Image "${image}" cannot be had (${waiting.reason}): ${waiting.message ?? 'no message'}; correct the image, or let the cluster reach it`,
    };
  }
  if (waiting?.reason && CONFIG.includes(waiting.reason)) {
    return { reason: 'PodConfigError', message: `${waiting.reason}: ${waiting.message ?? 'no message'}` };
  }
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  if (scheduled?.status === 'False') {
    return { reason: 'Unschedulable', message: scheduled.message ?? scheduled.reason ?? 'no node takes the pod' };
  }
  return undefined;
}
