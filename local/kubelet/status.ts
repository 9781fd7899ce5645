/** Status of a pod, from the states of its containers: pure. */

import { defined } from '../../core/defined.ts';
import type { ContainerState, ContainerStatus, Pod, PodCondition, PodPhase, PodStatus } from './types.ts';

/** State of one container for the status. */
export interface ContainerView {
  name: string;
  image: string;
  containerID: string | undefined;
  restartCount: number;
  state: ContainerState;
  lastState: ContainerState;
}

/** Formats a time with seconds precision, as every timestamp of the Kubernetes API. */
export function timestamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}

/** Reports whether a container with this exit code is started again. */
export function restarts(policy: string | undefined, exitCode: number): boolean {
  return policy === 'Always' || policy === undefined || (policy === 'OnFailure' && exitCode !== 0);
}

export function podPhase(policy: string | undefined, containers: readonly ContainerView[]): PodPhase {
  const ended = containers.filter((view) => view.state.terminated);
  const final = ended.filter((view) => !restarts(policy, view.state.terminated!.exitCode));
  if (final.length === containers.length) {
    return final.every((view) => view.state.terminated!.exitCode === 0) ? 'Succeeded' : 'Failed';
  }
  const begun = (view: ContainerView) => view.state.running || view.state.terminated || view.lastState.terminated;
  return containers.every(begun) ? 'Running' : 'Pending';
}

function containerStatus(view: ContainerView): ContainerStatus {
  const running = view.state.running !== undefined;
  return {
    name: view.name,
    image: view.image,
    imageID: '',
    ...defined({ containerID: view.containerID }),
    ready: running,
    started: running,
    restartCount: view.restartCount,
    state: view.state,
    lastState: view.lastState,
  };
}

function readiness(
  phase: PodPhase,
  containers: readonly ContainerView[],
): Pick<PodCondition, 'status' | 'reason' | 'message'> {
  const unready = containers.filter((view) => !view.state.running).map((view) => view.name);
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  if (unready.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: [${unready.join(' ')}]`,
  };
}

/** Returns the whole status of a pod; unchanged conditions keep their time. `ended` explains an end from outside. */
export function podStatus(
  pod: Pod,
  containers: readonly ContainerView[],
  now: number,
  startTime: string,
  ended?: { reason: string; message: string },
): PodStatus {
  const phase = ended ? 'Failed' : podPhase(pod.spec.restartPolicy, containers);
  const ready = readiness(phase, containers);
  const wanted: Omit<PodCondition, 'lastTransitionTime'>[] = [
    { type: 'PodReadyToStartContainers', status: phase === 'Succeeded' || phase === 'Failed' ? 'False' : 'True' },
    { type: 'Initialized', status: 'True' },
    { type: 'Ready', ...ready },
    { type: 'ContainersReady', ...ready },
    { type: 'PodScheduled', status: 'True' },
  ];
  const before = new Map((pod.status?.conditions ?? []).map((condition) => [condition.type, condition]));
  const conditions = wanted.map((condition) => {
    const old = before.get(condition.type);
    const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : timestamp(now);
    return { ...condition, lastTransitionTime };
  });
  const foreign = (pod.status?.conditions ?? []).filter(({ type }) => !wanted.some((own) => own.type === type));
  return {
    phase,
    ...(ended ?? {}),
    startTime,
    hostIP: '127.0.0.1',
    hostIPs: [{ ip: '127.0.0.1' }],
    podIP: '127.0.0.1',
    podIPs: [{ ip: '127.0.0.1' }],
    qosClass: pod.status?.qosClass ?? 'BestEffort',
    conditions: [...conditions, ...foreign],
    // Statuses are sorted like pkg/kubelet/types SortedContainerStatuses.
    containerStatuses: containers.map(containerStatus).sort((one, other) => (one.name < other.name ? -1 : 1)),
  };
}
