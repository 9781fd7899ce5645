/** The controller of the release from outside: its process, its metrics, its settings. */

import { type Any, controllerPods, get, kubectl, releaseNamespace } from '../e2e/support/cluster.ts';
import { type NodeProcess, onNode, processes } from '../e2e/support/node.ts';
import { eventually } from '../support/eventually.ts';
import { samplesOf } from '../support/metrics.ts';

const PROGRAM = '/opt/berth/controller.mjs';
const DEPLOYMENT = 'deployment/berth-controller';
const LIMIT_MS = 180_000;

export interface Leader {
  pod: string;
  targets: NodeProcess[];
}

/** Resolves with the process that holds the lease, once every controller's pod is ready and no other is left. */
export function leader(replicas = 1): Promise<Leader> {
  return eventually(
    async () => {
      const found = await controllerPods();
      const ready = found.filter(({ status, metadata }) => {
        const isReady = status.conditions?.some(({ type, status: is }: Any) => type === 'Ready' && is === 'True');
        return isReady && !metadata.deletionTimestamp;
      });
      if (found.length !== replicas || ready.length !== replicas) return undefined;
      const { spec } = await get(['lease', 'berth-controller', '-n', releaseNamespace]);
      const holder: string = spec.holderIdentity ?? '';
      const pod: string | undefined = ready
        .map(({ metadata }) => metadata.name)
        .find((name) => holder.startsWith(`${name}_`));
      if (!pod || Date.now() - Date.parse(spec.renewTime) > spec.leaseDurationSeconds * 1000) return undefined;
      const targets = await processes(PROGRAM, pod);
      return targets.length > 0 ? { pod, targets } : undefined;
    },
    { timeoutMs: LIMIT_MS, what: 'a controller leads' },
  );
}

async function rolledOut(replicas = 1): Promise<Leader> {
  await kubectl(['rollout', 'status', DEPLOYMENT, '-n', releaseNamespace, `--timeout=${LIMIT_MS / 1000}s`]);
  return leader(replicas);
}

/** Replaces the pods: the kubelet delays restarts of a container that has ended before. */
export async function fresh(replicas = 1): Promise<Leader> {
  await kubectl(['rollout', 'restart', DEPLOYMENT, '-n', releaseNamespace]);
  return rolledOut(replicas);
}

export async function scale(replicas: number): Promise<Leader> {
  await kubectl(['scale', DEPLOYMENT, '-n', releaseNamespace, `--replicas=${replicas}`]);
  return rolledOut(replicas);
}

/** Sets a variable of the controller's environment (`NAME=value`) or removes it (`NAME-`). */
export async function setVariable(assignment: string): Promise<Leader> {
  await kubectl(['set', 'env', DEPLOYMENT, '-n', releaseNamespace, assignment]);
  return rolledOut();
}

/** Samples of one metric of the leader, by labels. */
export async function metric({ pod }: Leader, name: string): Promise<Record<string, number>> {
  const path = `/api/v1/namespaces/${releaseNamespace}/pods/${pod}:8081/proxy/metrics`;
  return samplesOf(await kubectl(['get', '--raw', path]), name);
}

/** Pods that the leader is attached to. */
export async function attaches(of: Leader): Promise<number> {
  return (await metric(of, 'berth_attaches'))[''] ?? 0;
}

/** Writes that the API server has taken from the leader so far, renewals of its lease (PUT) left out. */
export async function writesOf(of: Leader): Promise<number> {
  let sum = 0;
  for (const [labels, count] of Object.entries(await metric(of, 'berth_api_requests_total'))) {
    if (/verb="(create|patch|delete)"/.test(labels) && /code="2/.test(labels)) sum += count;
  }
  return sum;
}

/** Resident memory of the leader's process in bytes. */
export async function residentBytes({ targets: [target] }: Leader): Promise<number> {
  if (!target) throw new Error('the leader has no process');
  const status = await onNode(target.node, ['cat', `/proc/${target.pid}/status`]);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
}
