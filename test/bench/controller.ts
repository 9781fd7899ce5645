/** The controller of the release from outside: its process, its metrics, its settings. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeClient } from '../../core/kube/client.ts';
import { leases } from '../../core/kube/resources.ts';
import type { ListOptions, Resource } from '../../core/kube/types.ts';
import { type Any, controllerPods, get, kubectl, podOf, releaseNamespace } from '../e2e/support/cluster.ts';
import { type NodeProcess, nodeNames, onNode, processes } from '../e2e/support/node.ts';
import { eventually } from '../support/eventually.ts';
import { samplesOf } from '../support/metrics.ts';

const LOGS = join(import.meta.dirname, '..', '..', 'build', 'e2e-logs');
const PROGRAM = '/opt/berth/controller.mjs';
const RUNNER = '/opt/berth/runner.cjs';
const LEASE = 'berth-controller';
const SETTLED_MS = 2000;
const DEPLOYMENT = 'deployment/berth-controller';
const LIMIT_MS = 180_000;

export interface Leader {
  pod: string;
  targets: NodeProcess[];
}

/** Number of controllers that the Deployment asks for. */
export async function replicas(): Promise<number> {
  return (await get([DEPLOYMENT, '-n', releaseNamespace])).spec.replicas;
}

/** Resolves with the process that holds the lease, once every controller's pod is ready and no other is left. */
export function leader(): Promise<Leader> {
  return eventually(
    async () => {
      const wanted = await replicas();
      const found = await controllerPods();
      const ready = found.filter(({ status, metadata }) => {
        const isReady = status.conditions?.some(({ type, status: is }: Any) => type === 'Ready' && is === 'True');
        return isReady && !metadata.deletionTimestamp;
      });
      if (found.length !== wanted || ready.length !== wanted) return undefined;
      const { spec } = await get(['lease', LEASE, '-n', releaseNamespace]);
      const holder: string = spec.holderIdentity ?? '';
      const pod: string | undefined = podOf(holder, ready)?.metadata.name;
      if (!pod || Date.now() - Date.parse(spec.renewTime) > spec.leaseDurationSeconds * 1000) return undefined;
      const targets = await processes(PROGRAM, pod);
      return targets.length > 0 ? { pod, targets } : undefined;
    },
    { timeoutMs: LIMIT_MS, what: 'a controller leads' },
  );
}

async function rolledOut(): Promise<Leader> {
  await kubectl(['rollout', 'status', DEPLOYMENT, '-n', releaseNamespace, `--timeout=${LIMIT_MS / 1000}s`]);
  return leader();
}

/** Replaces the pods: the kubelet delays restarts of a container that has ended before. */
export async function fresh(): Promise<Leader> {
  await kubectl(['rollout', 'restart', DEPLOYMENT, '-n', releaseNamespace]);
  return rolledOut();
}

export async function scale(to: number): Promise<Leader> {
  await kubectl(['scale', DEPLOYMENT, '-n', releaseNamespace, `--replicas=${to}`]);
  return rolledOut();
}

/** Sets a variable of the controller's environment (`NAME=value`) or removes it (`NAME-`). */
async function setVariable(assignment: string): Promise<Leader> {
  await kubectl(['set', 'env', DEPLOYMENT, '-n', releaseNamespace, assignment]);
  return rolledOut();
}

/** Writes the logs of the controller's pods to the folder that holds the cluster's after a failure: they are gone with the pods. */
async function keepLogs(): Promise<void> {
  mkdirSync(LOGS, { recursive: true });
  for (const { metadata } of await controllerPods()) {
    const log = await kubectl(['logs', metadata.name, '-n', releaseNamespace]);
    writeFileSync(join(LOGS, `${releaseNamespace}.${metadata.name}.log`), log);
  }
}

/**
 * Calls `work` while the controller has the variable, then gives it the earlier value, or none. Where the work fails, the logs of
 * the controller are kept, and its error is thrown even if the earlier value cannot be set.
 */
export async function withVariable<T>(name: string, value: string, work: (leads: Leader) => Promise<T>): Promise<T> {
  const { spec } = await get([DEPLOYMENT, '-n', releaseNamespace]);
  const env: Any[] = spec.template.spec.containers[0].env ?? [];
  const before: string | undefined = env.find((one) => one.name === name)?.value;
  const restore = () => setVariable(before === undefined ? `${name}-` : `${name}=${before}`);
  let result: T;
  try {
    result = await work(await setVariable(`${name}=${value}`));
  } catch (error) {
    await keepLogs().catch(() => {});
    await restore().catch(() => {});
    throw error;
  }
  await restore();
  return result;
}

/** Samples of one metric of the leader, by labels. */
async function metric(client: KubeClient, { pod }: Leader, name: string): Promise<Record<string, number>> {
  const path = `/api/v1/namespaces/${releaseNamespace}/pods/${pod}:8081/proxy/metrics`;
  return samplesOf(String(await client.raw('GET', path, { accept: 'text/plain' })), name);
}

/** Pods that the leader is attached to. */
export async function attaches(client: KubeClient, of: Leader): Promise<number> {
  return (await metric(client, of, 'berth_attaches'))[''] ?? 0;
}

/** Writes that a meter leaves out: its metrics tell them apart from no others, but a watch shows them. */
export interface LeftOut {
  resource: Resource;
  of: Pick<ListOptions, 'namespace' | 'fieldSelector' | 'labelSelector'>;
  type: 'ADDED' | 'MODIFIED';
}

const RENEWALS: LeftOut = {
  resource: leases,
  of: { namespace: releaseNamespace, fieldSelector: `metadata.name=${LEASE}` },
  type: 'MODIFIED',
};

/** Counts the writes of a leader, renewals of its lease and others left out. */
export class WriteMeter {
  readonly #client: KubeClient;
  readonly #leader: Leader;
  readonly #stop = new AbortController();
  #leftOut = 0;

  private constructor(client: KubeClient, of: Leader) {
    this.#client = client;
    this.#leader = of;
  }

  static async open(client: KubeClient, ...leftOut: LeftOut[]): Promise<WriteMeter> {
    const meter = new WriteMeter(client, await leader());
    for (const each of [RENEWALS, ...leftOut]) await meter.#leaveOut(each);
    return meter;
  }

  async #leaveOut({ resource, of, type }: LeftOut): Promise<void> {
    const { metadata } = await this.#client.list(resource, of);
    const { signal } = this.#stop;
    const events = this.#client.watch(resource, { ...of, resourceVersion: metadata.resourceVersion, signal });
    const count = async () => {
      for await (const event of events) if (event.type === type) this.#leftOut += 1;
    };
    // A watch that has ended counts no renewals, so the writes never settle.
    count().catch(() => {});
  }

  /** Writes that the API server has taken so far, to the request under way. */
  async read(): Promise<number> {
    let sum = 0;
    for (const [labels, count] of Object.entries(
      await metric(this.#client, this.#leader, 'berth_api_requests_total'),
    )) {
      if (/verb="(create|update|patch|delete)"/.test(labels) && /code="2/.test(labels)) sum += count;
    }
    return sum - this.#leftOut;
  }

  /** The same once it has not changed for two seconds: coalesced writes come up to a second late. */
  async settled(): Promise<number> {
    let last = await this.read();
    let since = performance.now();
    const { count } = await eventually(
      async () => {
        const now = await this.read();
        if (now !== last) [last, since] = [now, performance.now()];
        return performance.now() - since > SETTLED_MS ? { count: now } : undefined;
      },
      { what: 'the controller writes nothing' },
    );
    return count;
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Error('the writes are counted'));
  }
}

/** Memory of a process in bytes. `rss`: every page that it has mapped; `pss`: pages shared by n processes count for 1/n. */
export interface Memory {
  rss: number;
  pss: number;
}

/** Memory of the processes that a shell command on the node prints the ids of. */
async function memoryOn(node: string, pids: string): Promise<Memory[]> {
  const script = `for pid in $(${pids}); do cat /proc/$pid/smaps_rollup; done || true`;
  const rollups = await onNode(node, ['sh', '-c', script]);
  return [...rollups.matchAll(/^Rss:\s+(\d+) kB\nPss:\s+(\d+) kB$/gm)].map(([, rss, pss]) => ({
    rss: Number(rss) * 1024,
    pss: Number(pss) * 1024,
  }));
}

/** Memory of a leader's process. */
export async function leaderMemory({ targets }: Leader): Promise<Memory[]> {
  return (await Promise.all(targets.map(({ node, pid }) => memoryOn(node, `echo ${pid}`)))).flat();
}

/** Memory of every runner on the nodes. */
export async function runnerMemory(): Promise<Memory[]> {
  // The bracket keeps the shell, whose command line holds the pattern, out of the matches.
  const pattern = `[${RUNNER[0]}]${RUNNER.slice(1)}`;
  const nodes = await nodeNames();
  return (await Promise.all(nodes.map((node) => memoryOn(node, `pgrep --full -- '${pattern}'`)))).flat();
}
