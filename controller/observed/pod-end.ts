import type { ContainerState, Pod } from '../../core/kube/builtin.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import { isOver, ownContainer, wasNeverCreated } from './pod-status.ts';

/** Reasons for the end of a pod: read here alone from what Kubernetes reports. */

export interface PodEnd {
  reason: Extract<Reason, 'PodLost' | 'OOMKilled' | 'Evicted' | 'DiskFull'>;
  /** A clause that follows "Pod s-… ". */
  message: string;
  /** The cause lies outside the pod's containers, so another attempt may succeed. */
  fromOutside: boolean;
}

/** Facts about a pod's end that the pod itself does not show. */
export interface EndFacts {
  /** Memory limit, as written in the container's limits. */
  memoryLimit?: string | undefined;
  /** Reason for which this controller deleted the pod, if it did. */
  deletedBecause?: string | undefined;
}

/** The reason for a pod's end; `PodLost` when nothing more is known. */
export function podEnd(pod: Pod | undefined, { memoryLimit, deletedBecause }: EndFacts = {}): PodEnd {
  const ours = deletedBecause === undefined ? undefined : lost(`was deleted by Berth (${deletedBecause})`);
  if (!pod) return ours ?? lost('went away');
  const deleted = pod.metadata.deletionTimestamp ? (ours ?? lost('was deleted')) : undefined;
  return (
    disruption(pod) ?? ofPod(pod) ?? ofContainer(pod, memoryLimit, deleted) ?? deleted ?? ours ?? lost('went away')
  );
}

/**
 * Reports whether Kubernetes shows a reason for the pod's end yet. A kubelet that evicts a pod for its own storage shows
 * the ended container first, and the reason with the phase (pkg/kubelet/status: mergePodStatus).
 */
export function saysItsEnd(pod: Pod): boolean {
  return Boolean(
    disruption(pod) || ofPod(pod) || isOver(pod) || pod.metadata.deletionTimestamp || pod.status?.phase === 'Unknown',
  );
}

const evicted = (message: string): PodEnd => ({ reason: 'Evicted', message, fromOutside: true });
const lost = (message: string): PodEnd => ({ reason: 'PodLost', message, fromOutside: true });
const terminated = (pod: Pod): ContainerState['terminated'] => ownContainer(pod)?.state?.terminated;

// Reasons of the condition DisruptionTarget: k8s.io/api/core/v1 (PodReason…) and the writers named beside them.
function disruption(pod: Pod): PodEnd | undefined {
  const condition = pod.status?.conditions?.find(
    ({ type, status }) => type === 'DisruptionTarget' && status === 'True',
  );
  if (!condition) return undefined;
  const words = condition.message ? `: ${condition.message}` : '';
  switch (condition.reason) {
    case 'PreemptionByScheduler': // pkg/scheduler/framework/preemption
      return evicted(`was preempted by a pod of higher priority${words}`);
    case 'EvictionByEvictionAPI': // pkg/registry/core/pod/storage/eviction.go; its message says nothing
      return evicted('was evicted through the API, as kubectl drain and autoscalers do');
    case 'DeletionByTaintManager': // pkg/controller/tainteviction
      return evicted(`was evicted because of a taint of its node${words}`);
    case 'DeletionByPodGC': // pkg/controller/podgc: the node is gone or out of service
      return lost(`was removed with its node${words}`);
    default: // TerminationByKubelet: the pod's own status says more
      return ofPod(pod) ?? evicted(`was evicted${words}`);
  }
}

/** pod.status.reason, where the kubelet or the control plane gave one. */
function ofPod(pod: Pod): PodEnd | undefined {
  const { reason, message, conditions, phase } = pod.status ?? {};
  const words = message ? `: ${message}` : '';
  switch (reason) {
    case 'Evicted': {
      // pkg/kubelet/eviction: pressure on the node sets the condition too; a pod over its own storage limits gets none.
      const pressure =
        conditions?.some(({ type }) => type === 'DisruptionTarget') || /node was low on/.test(message ?? '');
      if (pressure) return evicted(`was evicted by its node${words}`);
      const what = 'was evicted because it used more of its node’s disk than it may';
      return { reason: 'DiskFull', message: `${what}${words}`, fromOutside: false };
    }
    case 'Terminated': // pkg/kubelet/nodeshutdown: pods that ran when the node began to shut down
    case 'Shutdown':
    case 'NodeShutdown':
      return evicted(`ended with its node, which shuts down${words}`);
    case 'Preempting': // pkg/kubelet/preemption
      return evicted(`was preempted by a critical pod${words}`);
    case 'NodeLost': // pkg/controller/util/node
      return lost(`was on a node that does not answer${words}`);
    case undefined:
    case '':
      return phase === 'Unknown' ? lost('is on a node that does not answer') : undefined;
    default: // includes rejections by the kubelet's admission: OutOfcpu, NodeAffinity, UnexpectedAdmissionError, …
      return lost(`was ended by its node (${reason}${words})`);
  }
}

function ofContainer(pod: Pod, memoryLimit?: string, deleted?: PodEnd): PodEnd | undefined {
  const state = terminated(pod);
  if (!state) return undefined;
  const limit = memoryLimit ? ` of ${memoryLimit}` : '';
  // containerd marks any container that ever had an OOM kill in it; only exit code 137 shows that the kill ended it.
  if (state.reason === 'OOMKilled' && state.exitCode === 137) {
    return { reason: 'OOMKilled', message: `was over its memory limit${limit} and was killed`, fromOutside: false };
  }
  if (deleted && wasNeverCreated(pod)) return deleted;
  // pkg/kubelet/kubelet_pods.go: the kubelet does not find the container after a restart of the node or the runtime.
  if (state.reason === 'ContainerStatusUnknown') return lost('did not survive a restart of its node');
  if (deleted) return deleted;
  if (state.exitCode === 137) {
    return lost(
      `was killed (exit code 137), perhaps by hand, perhaps for want of memory (its limit${limit || ' is not known'})`,
    );
  }
  const words = [state.reason, state.message].filter((word) => word && word !== 'Error' && word !== 'Completed');
  return lost(`ended with exit code ${state.exitCode}${words.length ? ` (${words.join(': ')})` : ''}`);
}
