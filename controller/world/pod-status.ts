import type { ContainerStatus, Pod, StoredPod } from '../../core/kube/builtin.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import type { NodeFacts, Problem } from './world.ts';

/** The one place that maps what Kubernetes reports of a pod that is there to Berth's words; for its end see pod-end.ts. */

/** The session's container. An admission webhook may have added others, and kubelets sort what they report by name. */
export function ownContainer(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER);
}

/**
 * Its container has ended; it will not run again (restartPolicy Never). One beside which another runs on is not waited for
 * that. Where all have ended the phase is: the kubelet writes it, and why it ended them, after their states.
 */
export function isOver(pod: Pod): boolean {
  const { containerStatuses = [] } = pod.status ?? {};
  if (isTerminal(pod)) return true;
  return Boolean(ownContainer(pod)?.state?.terminated && containerStatuses.some(({ state }) => !state?.terminated));
}

/** Its kubelet is done with it. */
function isTerminal({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/** Whether the container has ever been started. */
export function startedContainer(pod: Pod): boolean {
  const state = ownContainer(pod)?.state;
  return Boolean(state?.running || state?.terminated);
}

// The waiting reasons of the kubelet (pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go).
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
/** Nothing that happens outside the pod's own, unchangeable spec makes these go away. */
const HOPELESS = new Set(['InvalidImageName', 'ErrImageNeverPull']);

/** What keeps the session's container from starting: in one that comes before it, as that which brings the runner, or in it. */
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

/** Waiting will not help it. */
export function isHopeless(pod: Pod): boolean {
  return HOPELESS.has(waiting(pod)?.reason ?? '');
}

/** What keeps a pod from running, if Kubernetes says something does. */
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
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  // One that is held back waits for nobody but its controller.
  if (scheduled?.status === 'False' && scheduled.reason !== 'SchedulingGated') {
    return { reason: 'Unschedulable', message: scheduled.message ?? scheduled.reason ?? 'no node takes the pod' };
  }
  return undefined;
}

/**
 * Since when (milliseconds since the epoch) the pod's node has not answered, by the node where it is known, else by what
 * the control plane writes into the pod.
 */
export function unreachableSince(pod: Pod, node: NodeFacts | undefined): number | undefined {
  if (node) return node.ready ? undefined : node.since;
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  // pkg/controller/util/node MarkPodsNotReady: of a node that does not answer the controller makes the pods unready and
  // leaves all else as the kubelet wrote it last, which itself never calls a pod with a ready container unready.
  const marked = pod.status?.phase === 'Running' && ready?.status === 'False' && !ready.reason;
  const lost = pod.status?.reason === 'NodeLost' || pod.status?.phase === 'Unknown';
  if (!lost && !(marked && pod.status?.containerStatuses?.every((container) => container.ready))) return undefined;
  return ready?.lastTransitionTime ? Date.parse(ready.lastTransitionTime) : undefined;
}

/**
 * When (milliseconds since the epoch) a pod that its node does not answer for is given up: deleted, or removed without the
 * node's word where it is being deleted already. undefined while nothing is amiss.
 */
export function givenUpAt(pod: StoredPod, node: NodeFacts | undefined, graceMs: number): number | undefined {
  const terminating = pod.metadata.deletionTimestamp;
  if (!terminating) return after(unreachableSince(pod, node), graceMs);
  // A kubelet that is there is still at work on it.
  if (node?.ready) return undefined;
  // The API server sets it to the end of the pod's own grace.
  const ends = Date.parse(terminating);
  const since = unreachableSince(pod, node) ?? (node || isTerminal(pod) ? ends : evictedUnseen(pod));
  return after(since === undefined ? undefined : Math.max(since, ends), graceMs);
}

/**
 * Since when a pod is evicted for a taint of its node of which no kubelet has started anything: a dead node's looks like
 * that, as there is no ready container whose pod the control plane could call unready.
 */
function evictedUnseen(pod: Pod): number | undefined {
  const evicted = pod.status?.conditions?.find(({ type, status }) => type === 'DisruptionTarget' && status === 'True');
  if (evicted?.reason !== 'DeletionByTaintManager' || startedContainer(pod)) return undefined;
  return Date.parse(evicted.lastTransitionTime ?? '') || undefined;
}

const after = (since: number | undefined, ms: number) => (since === undefined ? undefined : since + ms);
