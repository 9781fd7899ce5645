/** The same cluster and the same image under kubernetes-sigs/agent-sandbox. */
import { setTimeout as delay } from 'node:timers/promises';
import { namespaces } from '../../../core/kube/resources.ts';
import type { NamespacedObject, Resource } from '../../../core/kube/types.ts';
import { type Any, kubectl, takesPods } from '../../e2e/support/cluster.ts';
import { loadImage } from '../../e2e/support/node.ts';
import { eventually } from '../../support/eventually.ts';
import { BenchCluster } from '../cluster.ts';
import type { Ground } from '../ground.ts';
import type { Outcome } from '../run.ts';
import { agentSandbox, count, SAMPLES } from '../settings.ts';
import { median } from '../statistics.ts';
import { type PeerMeasured, shown } from '../table.ts';
import { Watched } from '../watched.ts';
import { buildPeer, peerObjects } from './build.ts';

const NAMESPACE = 'agent-sandbox-system';
const GROUP = 'extensions.agents.x-k8s.io';
const LIMIT_MS = 300_000;

const COLD = SAMPLES;
const WARM = { pool: 12, claims: SAMPLES, pauseMs: 1000 };
const BURSTS = count(10, 1);
const BURST = count(30, 8);
const SUSTAINED = { runs: count(3, 1), pool: count(20, 6), perSecond: count(5, 2), seconds: count(20, 10) };

interface Custom extends NamespacedObject {
  spec: Any;
  status?: Any;
}

const kindOf = (kind: string): Resource<Custom> => {
  const plural = `${kind.toLowerCase()}s`;
  return { group: GROUP, version: 'v1beta1', plural, kind, namespaced: true };
};
const claims = kindOf('SandboxClaim');
const templates = kindOf('SandboxTemplate');
const pools = kindOf('SandboxWarmPool');

const isReady = ({ status }: Custom): boolean =>
  Boolean(status?.conditions?.some(({ type, status: is }: Any) => type === 'Ready' && is === 'True'));

const apply = (objects: Any[]) =>
  kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  });
const remove = (objects: Any[]) =>
  kubectl(['delete', '--ignore-not-found', '--timeout=300s', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  });

/** Installs it for the time of the section, and measures its claims until they are Ready: no work is delivered by then. */
export async function peer(ground: Ground): Promise<Outcome> {
  if (!agentSandbox) return { peer: 'no checkout: AGENT_SANDBOX=/path' };
  await loadImage(await buildPeer(agentSandbox));
  const { kinds, rest } = await peerObjects(agentSandbox);
  try {
    await apply(kinds);
    await apply(rest);
    await kubectl(['rollout', 'status', 'deployment/agent-sandbox-controller', '-n', NAMESPACE, '--timeout=180s']);
    await using claiming = await Claiming.start(ground);
    return {
      peer: {
        cold: await claiming.cold(),
        warm: await claiming.warm(),
        burst: await claiming.burst(),
        sustained: await claiming.sustained(),
      },
    };
  } finally {
    await remove(rest);
    await remove(kinds);
  }
}

/** Claims of one namespace and what they are measured by. */
class Claiming {
  readonly #cluster: BenchCluster;
  readonly #watched: Watched<Custom>;
  #count = 0;

  private constructor(cluster: BenchCluster, watched: Watched<Custom>) {
    this.#cluster = cluster;
    this.#watched = watched;
  }

  /** Makes a namespace with a template of the image, the resources and the restrictions of Berth's pods. */
  static async start({ cluster: { client, namespace: of }, floors }: Ground): Promise<Claiming> {
    const namespace = `${of}-peer`;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await takesPods(namespace);
    const spec = { podTemplate: { spec: floors.sleeping() } };
    // The API server serves a new kind a moment after it is defined.
    await eventually(() => client.create(templates, { metadata: { namespace, name: 'bench' }, spec }), {
      what: 'the kinds are served',
    });
    return new Claiming(new BenchCluster(client, namespace), await Watched.open(client, claims, namespace));
  }

  /** Makes a pool and resolves once all of it is ready. */
  async #pool(name: string, replicas: number): Promise<void> {
    const { client, namespace } = this.#cluster;
    const spec = { replicas, sandboxTemplateRef: { name: 'bench' } };
    await client.create(pools, { metadata: { namespace, name }, spec });
    await this.#filled(name, replicas);
  }

  #filled(name: string, replicas: number): Promise<unknown> {
    const { client, namespace } = this.#cluster;
    const isFull = async () => ((await client.get(pools, { namespace, name })).status?.readyReplicas ?? 0) >= replicas;
    return eventually(isFull, { timeoutMs: LIMIT_MS, what: `pool ${name} of ${replicas}` });
  }

  async #drop(name: string): Promise<void> {
    await this.#cluster.client.delete(pools, { namespace: this.#cluster.namespace, name });
    await this.#cluster.noPods();
  }

  /** A claim from its creation until a watch shows it Ready; milliseconds, and the claim's name. */
  async #claim(pool: string): Promise<{ ms: number; name: string }> {
    const { client, namespace } = this.#cluster;
    const name = `claim-${this.#count++}`;
    const spec = { warmPoolRef: { name: pool } };
    const create = () => client.create(claims, { metadata: { namespace, name }, spec });
    const { ms } = await this.#watched.timed(name, create, isReady);
    return { ms, name };
  }

  #end(name: string): Promise<void> {
    return this.#cluster.client.delete(claims, { namespace: this.#cluster.namespace, name });
  }

  async cold(): Promise<PeerMeasured> {
    await this.#pool('cold', 0);
    const values: number[] = [];
    for (let i = 0; i < COLD; i++) {
      const { ms, name } = await this.#claim('cold');
      values.push(ms);
      await this.#end(name);
      await this.#cluster.noPods();
    }
    await this.#drop('cold');
    return { values, note: 'claim → Ready, no work delivered' };
  }

  async warm(): Promise<PeerMeasured> {
    await this.#pool('warm', WARM.pool);
    const values: number[] = [];
    for (let i = 0; i < WARM.claims; i++) {
      const started = performance.now();
      const { ms, name } = await this.#claim('warm');
      values.push(ms);
      await this.#end(name);
      await delay(Math.max(0, WARM.pauseMs - (performance.now() - started)));
    }
    await this.#drop('warm');
    return { values, note: `claim → Ready, one a second, pool of ${WARM.pool}` };
  }

  async burst(): Promise<PeerMeasured> {
    const values: number[] = [];
    for (let i = 0; i < BURSTS; i++) {
      const pool = `burst-${i}`;
      await this.#pool(pool, BURST);
      const started = performance.now();
      const made = await Promise.all(Array.from({ length: BURST }, () => this.#claim(pool)));
      values.push(performance.now() - started);
      await Promise.all(made.map(({ name }) => this.#end(name)));
      await this.#drop(pool);
    }
    return { values, note: `${BURST} claims Ready, pool of ${BURST}` };
  }

  async sustained(): Promise<PeerMeasured> {
    const { runs, pool: replicas, perSecond, seconds } = SUSTAINED;
    const values: number[] = [];
    const halves: string[] = [];
    for (let i = 0; i < runs; i++) {
      const pool = `sustained-${i}`;
      await this.#pool(pool, replicas);
      const made: Promise<number>[] = [];
      const started = performance.now();
      for (let claim = 0; claim < perSecond * seconds; claim++) {
        await delay(Math.max(0, started + (claim * 1000) / perSecond - performance.now()));
        // A claim ends when it is Ready: a node takes 110 pods.
        made.push(this.#claim(pool).then(async ({ ms, name }) => this.#end(name).then(() => ms)));
      }
      const all = await Promise.all(made);
      const [first, second] = [all.slice(0, all.length / 2), all.slice(all.length / 2)].map(median);
      values.push((second as number) / (first as number));
      halves.push(`${shown(first as number)} → ${shown(second as number)} ms`);
      await this.#drop(pool);
    }
    const note = `${perSecond}/s for ${seconds} s, pool of ${replicas}, claims ended when Ready: ${halves.join(', ')}`;
    return { values, note };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watched.close();
    const { client, namespace } = this.#cluster;
    await kubectl(['delete', 'sandboxclaims,sandboxwarmpools,sandboxtemplates', '--all', '-n', namespace]);
    await client.delete(namespaces, { name: namespace });
  }
}
