import { setTimeout } from 'node:timers/promises';
import { pods } from '../../core/kube/resources.ts';
import { sessionpools } from '../../core/resources/kinds.ts';
import { LABEL_POOL } from '../../core/resources/names.ts';
import { eventually } from '../support/eventually.ts';
import type { LeftOut } from './controller.ts';
import type { Ground } from './ground.ts';

const NAME = 'default';
const FULL_LIMIT_MS = 300_000;
/** Time for which a full pool waits before a sample: its runners have rehearsed by then, also where many have become ready at once. */
const REHEARSED_MS = 2_000;

export interface PoolOptions {
  class?: string;
  replicas?: number;
}

/** The pool of the benchmark's namespace, and the pods that it has made. */
export class Pool {
  readonly #ground: Ground;
  readonly #replicas: number;
  readonly #uids = new Set<string>();
  readonly #stop = new AbortController();
  #claims = 0;

  private constructor(ground: Ground, replicas: number) {
    this.#ground = ground;
    this.#replicas = replicas;
  }

  /** Creates the pool and resolves once all of it is ready. */
  static async open(ground: Ground, { class: ofClass = 'default', replicas = 1 }: PoolOptions = {}): Promise<Pool> {
    const { client } = ground.cluster;
    const { namespace } = ground;
    const pool = new Pool(ground, replicas);
    const ofPool = { namespace, labelSelector: `${LABEL_POOL}=${NAME}` };
    const { metadata } = await client.list(pods, ofPool);
    const { resourceVersion } = metadata;
    const events = client.watch(pods, { ...ofPool, resourceVersion, signal: pool.#stop.signal });
    const note = async () => {
      for await (const event of events) if (event.type === 'ADDED') pool.#uids.add(event.object.metadata.uid);
    };
    // After the end of the watch no further pod counts as the pool's.
    note().catch(() => {});
    await client.create(sessionpools, {
      ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', metadata: { namespace, name: NAME } },
      spec: { class: ofClass, replicas },
    });
    await pool.full();
    return pool;
  }

  /** Writes of the controller that keep the pool full. */
  static refill(namespace: string): LeftOut[] {
    return [
      { resource: sessionpools, of: { namespace, fieldSelector: `metadata.name=${NAME}` }, type: 'MODIFIED' },
      { resource: pods, of: { namespace, labelSelector: `${LABEL_POOL}=${NAME}` }, type: 'ADDED' },
    ];
  }

  /**
   * Resolves once all of the pool is ready, by a status that knows of every claim which the benchmark knows, and has been for as
   * long as a runner takes to rehearse: a pod of a pool waits for minutes as a rule.
   */
  async full(): Promise<void> {
    const { cluster, namespace } = this.#ground;
    const isFull = async () => {
      const { metadata, status } = await cluster.client.get(sessionpools, { namespace, name: NAME });
      if (status?.observedGeneration !== metadata.generation) return false;
      const { ready, claimed = 0, missed = 0 } = status ?? {};
      return ready === this.#replicas && claimed + missed >= this.#claims;
    };
    await eventually(isFull, { what: `the pool has ${this.#replicas} ready pods`, timeoutMs: FULL_LIMIT_MS });
    await setTimeout(REHEARSED_MS);
  }

  /** Reports whether the pool has made the pod, claimed or not. */
  has(podUID: string): boolean {
    return this.#uids.has(podUID);
  }

  /** Throws unless a session ran on a pod of the pool, which it has thereby lost. */
  claimed(session: string, podUID: string): void {
    if (!this.has(podUID)) throw new Error(`session ${session} ran on pod ${podUID}, which is none of the pool's`);
    this.#claims += 1;
  }

  /** Deletes the pool. Its unclaimed pods follow. */
  async delete(): Promise<void> {
    this.#stop.abort(new Error('the pool is deleted'));
    const { cluster, namespace } = this.#ground;
    await cluster.client.delete(sessionpools, { namespace, name: NAME });
  }
}
