import type { Pod } from '../../core/kube/builtin.ts';
import { KubeClient } from '../../core/kube/client.ts';
import { loadConnection } from '../../core/kube/config.ts';
import { pods } from '../../core/kube/resources.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';
import { silentLogger, systemClock, systemRandom } from '../../core/system.ts';

/** Time within which the pods of a measurement are gone: two nodes that share two CPUs end two or three a second. */
const GONE_MS = 10 * 60_000;

/** The cluster as a stopwatch needs it: one connection, and watches that tell the moment something is seen. */
export class BenchCluster {
  readonly client: KubeClient;
  readonly namespace: string;

  constructor(client: KubeClient, namespace: string) {
    this.client = client;
    this.namespace = namespace;
  }

  /** Connects by this kubeconfig, or by that of the environment. */
  static async connect(namespace: string, kubeconfig?: string): Promise<BenchCluster> {
    const connection = await loadConnection(kubeconfig === undefined ? {} : { path: kubeconfig });
    const surroundings = { clock: systemClock, random: systemRandom, log: silentLogger };
    return new BenchCluster(new KubeClient({ connection, ...surroundings, userAgent: 'berth-bench' }), namespace);
  }

  /** Milliseconds from just before `create` until an object named `name` satisfies `check`, as a watch shows it. */
  async timed<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    create: () => Promise<unknown>,
    check: (object: Stored<T>) => boolean,
    timeoutMs = 60_000,
  ): Promise<{ ms: number; object: Stored<T> }> {
    const { namespace, client } = this;
    const fieldSelector = `metadata.name=${name}`;
    const { metadata } = await client.list(resource, { namespace, fieldSelector });
    const signal = AbortSignal.timeout(timeoutMs);
    const events = client.watch(resource, {
      namespace,
      fieldSelector,
      resourceVersion: metadata.resourceVersion,
      signal,
    });
    const iterator = events[Symbol.asyncIterator]();
    let next = iterator.next();
    const started = performance.now();
    await create();
    for (;;) {
      const { value, done } = await next;
      if (done) throw new Error(`the watch of ${resource.plural} ${name} ended`);
      if (value.type !== 'BOOKMARK' && check(value.object)) {
        const ms = performance.now() - started;
        await iterator.return?.(undefined);
        return { ms, object: value.object };
      }
      next = iterator.next();
    }
  }

  /**
   * Resolves when no pod of the namespace is left, or none that the selector selects, so that one measurement does not weigh
   * on the next.
   */
  async noPods(labelSelector = ''): Promise<void> {
    const { namespace, client } = this;
    const of = { namespace, labelSelector };
    const deadline = performance.now() + GONE_MS;
    for (;;) {
      const { items, metadata } = await client.list<Pod>(pods, of);
      if (items.length === 0) return;
      if (performance.now() > deadline) throw new Error(`pods are left in ${namespace}`);
      const left = Math.max(1, Math.ceil(deadline - performance.now()));
      const signal = AbortSignal.timeout(left);
      const events = client.watch(pods, { ...of, resourceVersion: metadata.resourceVersion, signal });
      try {
        for await (const event of events) if (event.type === 'DELETED') break;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }
}
