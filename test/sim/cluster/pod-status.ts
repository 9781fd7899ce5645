import type { ContainerState } from '../../../core/kube/builtin.ts';
import { CONTAINER } from '../../../core/resources/names.ts';
import type { Exit, SimContainer } from './container.ts';
import type { Node } from './kubelet-options.ts';

/** A session's pod as its kubelet knows it. */
export interface SimPod {
  namespace: string;
  name: string;
  uid: string;
  node: Node | undefined;
  container: SimContainer | undefined;
  startedAt: string;
  waiting: ContainerState['waiting'];
  /** True while scheduling gates hold the pod back. */
  gated: boolean;
  terminating: boolean;
  /** True when the kubelet evicted the pod. */
  evicted: boolean;
  gone: boolean;
}

/** Returns the pod status that the kubelet reports. */
export function podStatus({ container, waiting, startedAt, evicted, terminating, uid }: SimPod, now: number) {
  const exit = container?.exit;
  const never = { exitCode: 137, reason: 'ContainerStatusUnknown', message: 'simulated' };
  const state: ContainerState = exit
    ? { terminated: { ...ending(exit), startedAt, finishedAt: second(now) } }
    : container
      ? { running: { startedAt } }
      : terminating
        ? { terminated: never }
        : { waiting: waiting ?? { reason: 'ContainerCreating' } };
  return {
    phase: phaseOf(evicted || (terminating && !container), container),
    ...(evicted ? { reason: 'Evicted', message: 'The node was low on resource: simulated.' } : {}),
    conditions: [scheduled('True')],
    containerStatuses: [
      {
        name: CONTAINER,
        image: 'runner',
        ...(container ? { containerID: `sim://${uid}` } : {}),
        imageID: '',
        ready: !exit && container !== undefined,
        restartCount: 0,
        state,
      },
    ],
  };
}

function phaseOf(failed: boolean, container: SimContainer | undefined): string {
  if (failed) return 'Failed';
  if (!container) return 'Pending';
  if (!container.exit) return 'Running';
  return container.exit.code === 0 ? 'Succeeded' : 'Failed';
}

/** Formats a time as Kubernetes does, in whole seconds. */
export const second = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;

export const scheduled = (status: 'True' | 'False', reason?: string) => ({
  type: 'PodScheduled',
  status,
  ...(reason ? { reason, message: '0/2 nodes are available (simulated)' } : {}),
});

const ending = ({ code, reason }: Exit) => ({ exitCode: code, reason: reason ?? (code === 0 ? 'Completed' : 'Error') });
