import type { ContainerState, ContainerStatus, Pod, StoredPod } from '../../core/kube/builtin.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import type { NodeFacts, Problem, World } from './world.ts';

/** Maps the status of an existing pod to Berth's reasons; pod-end.ts does so for a pod's end. */

/**
 * The session's container, found by name: an admission webhook may have added others, and kubelets sort statuses by
 * name.
 */
export function ownContainer(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER);
}

/**
 * Reports whether the session's container has ended; it will not run again (restartPolicy Never). A sidecar that still
 * runs is no reason to wait. Once all containers have ended the phase decides: the kubelet writes it, with the reason for
 * the end, after the container states.
 */
export function isOver(pod: Pod): boolean {
  const { containerStatuses = [] } = pod.status ?? {};
  if (isTerminal(pod)) return true;
  return Boolean(ownContainer(pod)?.state?.terminated && containerStatuses.some(({ state }) => !state?.terminated));
}

/**
 * Reports whether the session's pod takes nothing more: it is gone, terminating or ended, or is to be deleted.
 * Such a pod needs no acknowledgement.
 */
export function isLeaving({ pod, memory }: Pick<World, 'pod' | 'memory'>): boolean {
  if (!pod || pod.metadata.deletionTimestamp || isOver(pod)) return true;
  return memory.incarnation.deletionPending?.podUID === pod.metadata.uid;
}

/** Reports whether the pod's phase is terminal: the kubelet has nothing left to do. */
function isTerminal({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/** Reports whether the session's container was ever started. */
export function startedContainer(pod: Pod): boolean {
  const state = ownContainer(pod)?.state;
  return Boolean(state?.running || state?.terminated);
}

/**
 * Reports whether the container runtime could not start the session's container. The program may not be in its image, or the
 * node has a fault, such as a sandbox that is gone (containerd, internal/cri/server/container_start.go: errorStartReason).
 */
export function couldNotStart(pod: Pod): boolean {
  return ownContainer(pod)?.state?.terminated?.reason === 'StartError';
}

/**
 * Reports whether a kubelet has ended the pod and never created its container. It reports containers that were never created as
 * ended with ContainerStatusUnknown, without an ID and a start, and the session's as waiting where an init container before it
 * never ran (pkg/kubelet/status: TerminatePod). The phase alone proves nothing: pkg/controller/podgc sets it, too, and leaves
 * what a kubelet without a connection has reported before.
 */
export function wasNeverCreated(pod: Pod): boolean {
  const { containerID, state, lastState, restartCount } = ownContainer(pod) ?? {};
  // A container that the runtime has lost has no ID either, but an earlier end.
  if (!isTerminal(pod) || containerID || lastState?.terminated || restartCount) return false;
  if (state?.waiting) return pod.status?.initContainerStatuses?.some((one) => isUnknown(one.state)) === true;
  return isUnknown(state) && !state?.terminated?.startedAt;
}

function isUnknown(state: ContainerState | undefined): boolean {
  return state?.terminated?.reason === 'ContainerStatusUnknown';
}

// Waiting reasons of the kubelet (pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go).
const IMAGE = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ImageInspectError',
  'InvalidImageName',
  'ErrImageNeverPull',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
const CONFIG = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'PreCreateHookError',
  'PreStartHookError',
  'RunContainerError',
]);
/** Waiting reasons that only a change of the pod's immutable spec would remove. */
const HOPELESS = new Set(['InvalidImageName', 'ErrImageNeverPull']);

/**
 * The waiting reason of the session's container or of an init container before it, such as the one that brings the
 * runner.
 */
function waiting(pod: Pod) {
  const { spec, status } = pod;
  for (const one of [...(status?.initContainerStatuses ?? []), ownContainer(pod)]) {
    const { reason = '', message } = one?.state?.waiting ?? {};
    if (!IMAGE.has(reason) && !CONFIG.has(reason)) continue;
    const { image } = [...(spec.initContainers ?? []), ...spec.containers].find(({ name }) => name === one?.name) ?? {};
    return { reason, message, image };
  }
  return undefined;
}

/** Reports whether the container can never start. */
export function isHopeless(pod: Pod): boolean {
  return HOPELESS.has(waiting(pod)?.reason ?? '');
}

/**
 * The problem that keeps a pod from running, if Kubernetes reports one. PodScheduled counts only while the pod is on no
 * node: a scheduler that does not hear that its binding succeeded sets it to False on a pod that the kubelet may start.
 */
export function podProblem(pod: Pod): Problem | undefined {
  const { reason, message = 'no message', image } = waiting(pod) ?? {};
  if (reason && IMAGE.has(reason)) {
    const advice = HOPELESS.has(reason)
      ? 'correct the image, or imagePullPolicy of its class'
      : 'correct the image or its pull secret, or let the node reach the registry';
    return {
      reason: 'ImageUnavailable',
      message: `Image "${image}" cannot be had (${reason}): ${message}; ${advice}`,
    };
  }
  if (reason) return { reason: 'PodConfigError', message: `${reason}: ${message}` };
  if (pod.spec.nodeName !== undefined) return undefined;
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  // A gated pod waits only for this controller.
  if (scheduled?.status === 'False' && scheduled.reason !== 'SchedulingGated') {
    return { reason: 'Unschedulable', message: scheduled.message ?? scheduled.reason ?? 'no node takes the pod' };
  }
  return undefined;
}

/**
 * Time since which the pod's node has not answered, milliseconds since the epoch: from the Node where it is known, else
 * from the conditions that the control plane writes into the pod.
 */
export function unreachableSince(pod: Pod, node: NodeFacts | undefined): number | undefined {
  if (node) return node.ready ? undefined : node.since;
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  // pkg/controller/util/node MarkPodsNotReady: the control plane sets Ready to False on the pods of a node that does
  // not answer and leaves the rest as the kubelet wrote it. The kubelet itself never calls a pod with ready containers
  // unready.
  const marked = pod.status?.phase === 'Running' && ready?.status === 'False' && !ready.reason;
  const lost = pod.status?.reason === 'NodeLost' || pod.status?.phase === 'Unknown';
  if (!lost && !(marked && pod.status?.containerStatuses?.every((container) => container.ready))) return undefined;
  return ready?.lastTransitionTime ? Date.parse(ready.lastTransitionTime) : undefined;
}

/**
 * Time at which a pod on an unresponsive node is given up, milliseconds since the epoch: the pod is deleted, or
 * force-deleted when its deletion is pending already. undefined while the node answers.
 */
export function givenUpAt(pod: StoredPod, node: NodeFacts | undefined, graceMs: number): number | undefined {
  const terminating = pod.metadata.deletionTimestamp;
  if (!terminating) return after(unreachableSince(pod, node), graceMs);
  // A ready node's kubelet is still terminating the pod.
  if (node?.ready) return undefined;
  // The API server sets deletionTimestamp to the end of the pod's grace period.
  const ends = Date.parse(terminating);
  const since = unreachableSince(pod, node) ?? (node || isTerminal(pod) ? ends : evictedUnseen(pod));
  return after(since === undefined ? undefined : Math.max(since, ends), graceMs);
}

/**
 * Time of the eviction for a node taint of a pod that no kubelet has started. Pods of a dead node can be in this state:
 * without a ready container the control plane has none to set unready.
 */
function evictedUnseen(pod: Pod): number | undefined {
  const evicted = pod.status?.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  if (evicted?.reason !== 'DeletionByTaintManager' || startedContainer(pod)) return undefined;
  return Date.parse(evicted.lastTransitionTime ?? '') || undefined;
}

const after = (since: number | undefined, ms: number) => (since === undefined ? undefined : since + ms);
