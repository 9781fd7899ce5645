/**
 * Node of the embedded cluster: every pod is bound to it, and its containers are processes of this machine. They are
 * not isolated from it or from one another: securityContext, resources and probes have no effect.
 */

import { ApiError, isAlreadyExists } from '../../core/kube/errors.ts';
import { nodes } from '../../core/kube/resources.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { PodHandlers, Store } from '../apiserver/types.ts';
import { Claims } from './claims.ts';
import { PodEvents } from './events.ts';
import { followAll } from './follow-all.ts';
import { podHandlers } from './handlers.ts';
import { MARKER_ROOT } from './markers.ts';
import { nodeObject } from './node.ts';
import { PipeFactory } from './pipes.ts';
import { type PodDeps, PodWorker } from './pod.ts';
import type { ProcessTable } from './process-table.ts';
import { findBelonging, killBelonging, processTable } from './processes.ts';
import { PodFolders } from './records.ts';
import { type Images, type Pod, pods } from './types.ts';

const NODE_NAME = 'embedded';

export interface KubeletOptions {
  /** BERTH_HOME: pods get folders under `pods`, logs and records are under `kubelet`. */
  home: string;
  images: Images;
  /** Path of Berth's keeper, which commands on a terminal run under; without it there are none. */
  keeper?: string;
  clock: Clock;
  random: Random;
  logger: Logger;
}

export class Kubelet {
  /** Handlers for the API server; usable from the beginning, answer 503 until `start`. */
  readonly handlers: PodHandlers;
  readonly #options: KubeletOptions;
  readonly #table: ProcessTable = processTable;
  readonly #folders: PodFolders;
  readonly #pipes: PipeFactory;
  readonly #workers = new Map<string, PodWorker>();
  readonly #removals = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #deps: PodDeps | undefined;
  #watching: Promise<void> = Promise.resolve();

  constructor(options: KubeletOptions) {
    this.#options = options;
    this.#folders = new PodFolders(options.home);
    this.#pipes = new PipeFactory(this.#folders.pipes);
    const handlers = podHandlers({
      worker: (uid) => this.#workers.get(uid),
      folders: this.#folders,
      pipes: this.#pipes,
      keeper: options.keeper,
      now: () => options.clock.now(),
    });
    this.handlers = {
      log: (...args) => {
        this.#checkStarted();
        return handlers.log(...args);
      },
      stream: (...args) => {
        this.#checkStarted();
        handlers.stream(...args);
      },
    };
  }

  /**
   * Ends processes that a killed kubelet of the same home left running, registers the node and takes up all pods.
   * Resolves when pods are being served. Rejects when leftovers cannot be ended: their pods might then run twice.
   */
  async start(store: Store): Promise<void> {
    const { clock, random, logger, images } = this.#options;
    await Promise.all([this.#endLeftovers(), this.#pipes.prepare(), this.#registerNode(store)]);
    const claims = new Claims({ folder: this.#folders.volumes, store, clock, logger });
    this.#deps = {
      store,
      folders: this.#folders,
      claims,
      images,
      nodeName: NODE_NAME,
      container: { table: this.#table, pipes: this.#pipes, clock },
      clock,
      logger,
      events: new PodEvents(store, { clock, random, logger, nodeName: NODE_NAME }),
      stopping: this.#stopping.signal,
    };
    const resourceVersion = await this.#list();
    const { signal } = this.#stopping;
    this.#watching = Promise.all([this.#watch(resourceVersion), claims.sweep(signal)]).then(() => {});
  }

  /** Ends all pods, each within its own grace period but `graceMs` at most, then stops. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
    await Promise.all([...this.#workers.values()].map((worker) => worker.shutdown(graceMs)));
    await Promise.all(this.#removals);
  }

  #checkStarted(): void {
    if (this.#deps) return;
    throw new ApiError({ code: 503, reason: 'ServiceUnavailable', message: 'the kubelet is not ready yet: try again' });
  }

  async #endLeftovers(): Promise<void> {
    const belonging = {
      leaders: this.#folders.processes(),
      marked: (environment: Map<string, string>) =>
        environment.get(MARKER_ROOT)?.startsWith(`${this.#folders.roots}/`) === true,
    };
    const found = findBelonging(this.#table, belonging);
    if (found.length === 0) return;
    this.#options.logger.warn({ pids: found }, 'stopping processes of an earlier run');
    const left = await killBelonging(this.#table, belonging);
    if (left.length > 0) throw new Error(`processes of an earlier run cannot be ended: pids ${left.join(', ')}`);
  }

  async #registerNode(store: Store): Promise<void> {
    const node = nodeObject(NODE_NAME, this.#options.clock.now());
    try {
      await store.create(nodes, node);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    await store.patch(nodes, { name: NODE_NAME }, { status: node.status }, { type: 'merge', subresource: 'status' });
  }

  /** Takes up the present pods; returns the version to watch from. */
  async #list(): Promise<string> {
    const { items, metadata } = await this.#deps!.store.list(pods);
    const present = new Set(items.map((pod) => pod.metadata.uid));
    for (const uid of this.#workers.keys()) if (!present.has(uid)) this.#remove(uid);
    for (const uid of this.#folders.known()) {
      if (!present.has(uid) && !this.#workers.has(uid)) this.#removeFolder(uid);
    }
    for (const pod of items) this.#take(pod);
    return metadata.resourceVersion;
  }

  /** A folder that cannot be removed, as with files of another user in it, stays until the next start. */
  #removeFolder(uid: string): void {
    try {
      this.#folders.remove(uid);
    } catch (error) {
      this.#options.logger.warn({ uid, err: error }, 'pod folder not removed');
    }
  }

  #watch(from: string): Promise<void> {
    const { clock, logger } = this.#options;
    return followAll(this.#deps!.store, pods, {
      from,
      list: () => this.#list(),
      changed: ({ type, object }) => {
        if (type === 'DELETED') this.#remove(object.metadata.uid);
        else this.#take(object);
      },
      clock,
      logger,
      signal: this.#stopping.signal,
    });
  }

  #take(pod: Pod): void {
    if (pod.spec.nodeName && pod.spec.nodeName !== NODE_NAME) return;
    let worker = this.#workers.get(pod.metadata.uid);
    if (!worker) {
      worker = new PodWorker(this.#deps!, pod, this.#folders.read(pod.metadata.uid));
      this.#workers.set(pod.metadata.uid, worker);
      worker.start();
    }
    worker.update(pod);
  }

  #remove(uid: string): void {
    const worker = this.#workers.get(uid);
    if (!worker) return;
    this.#workers.delete(uid);
    const removal = worker.removed().finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}
