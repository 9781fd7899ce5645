import { randomBytes } from 'node:crypto';
import type { Pod } from '../../../core/kube/builtin.ts';
import { namespaces } from '../../../core/kube/resources.ts';
import type { NamespacedObject, Resource } from '../../../core/kube/types.ts';
import { type Any, kubectl, takesPods } from '../../e2e/support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { BenchCluster } from '../cluster.ts';
import { type Taken, withShares } from '../cpu-shares.ts';
import { sleeping } from '../floors.ts';
import type { Ground } from '../ground.ts';
import { type Pace, paced } from '../pace.ts';
import { Watched } from '../watched.ts';

const GROUP = 'extensions.agents.x-k8s.io';
const LIMIT_MS = 300_000;

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

/** A claim from its creation until a watch shows it Ready; milliseconds, and the claim's name. */
interface Claimed {
  ms: number;
  name: string;
}

/** Claims of a namespace of their own, and the pools that they are made from. */
export class Claiming {
  readonly #cluster: BenchCluster;
  readonly #watched: Watched<Custom>;
  #count = 0;

  private constructor(cluster: BenchCluster, watched: Watched<Custom>) {
    this.#cluster = cluster;
    this.#watched = watched;
  }

  /** Makes a namespace with a template of the image, the resources and the restrictions of a pod of Berth's. */
  static async start({ cluster: { client, namespace: of } }: Ground, template: Pod): Promise<Claiming> {
    const namespace = `${of}-peer-${randomBytes(2).toString('hex')}`;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await takesPods(namespace);
    const spec = { podTemplate: { spec: sleeping(template) } };
    // The API server serves a new kind a moment after it is defined.
    await eventually(() => client.create(templates, { metadata: { namespace, name: 'bench' }, spec }), {
      what: 'the kinds are served',
    });
    return new Claiming(new BenchCluster(client, namespace), await Watched.open(client, claims, namespace));
  }

  /** Calls `work` with the name of a pool, all of which is ready. Deletes the pool and waits until no pod is left. */
  async withPool<T>(replicas: number, work: (pool: string) => Promise<T>): Promise<T> {
    const { client, namespace } = this.#cluster;
    const name = `pool-${this.#count++}`;
    const spec = { replicas, sandboxTemplateRef: { name: 'bench' } };
    await client.create(pools, { metadata: { namespace, name }, spec });
    const isFull = async () => ((await client.get(pools, { namespace, name })).status?.readyReplicas ?? 0) >= replicas;
    await eventually(isFull, { timeoutMs: LIMIT_MS, what: `pool ${name} of ${replicas}` });
    const result = await work(name);
    await client.delete(pools, { namespace, name });
    await this.noPods();
    return result;
  }

  async claim(pool: string): Promise<Claimed> {
    const { client, namespace } = this.#cluster;
    const name = `claim-${this.#count++}`;
    const spec = { warmPoolRef: { name: pool } };
    const create = () => client.create(claims, { metadata: { namespace, name }, spec });
    const { ms } = await this.#watched.timed(name, create, isReady);
    return { ms, name };
  }

  end({ name }: Claimed): Promise<void> {
    return this.#cluster.client.delete(claims, { namespace: this.#cluster.namespace, name });
  }

  noPods(): Promise<void> {
    return this.#cluster.noPods();
  }

  /** So many claims at once from a pool of as many, until the last is Ready. */
  burst(size: number): Promise<Taken> {
    return this.withPool(size, async (pool) => {
      const { result, ...taken } = await withShares(() =>
        Promise.all(Array.from({ length: size }, () => this.claim(pool))),
      );
      await Promise.all(result.map((claimed) => this.end(claimed)));
      return taken;
    });
  }

  /** Milliseconds of claims at a pace, in their order. Each ends when it is Ready, so that the nodes have room for the later ones. */
  sustained(replicas: number, pace: Pace): Promise<number[]> {
    return this.withPool(replicas, (pool) =>
      paced(pace, async () => {
        const claimed = await this.claim(pool);
        await this.end(claimed);
        return claimed.ms;
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#watched.close();
    const { client, namespace } = this.#cluster;
    await kubectl(['delete', 'sandboxclaims,sandboxwarmpools,sandboxtemplates', '--all', '-n', namespace]);
    await client.delete(namespaces, { name: namespace });
  }
}
