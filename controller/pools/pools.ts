import { isDeepStrictEqual } from 'node:util';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import { type StoredSessionPool, sessionpools } from '../../core/resources/kinds.ts';
import { LABEL_POOL, numberOfPod, poolOfPod } from '../../core/resources/names.ts';
import type { SessionPoolStatus } from '../../core/resources/sessionpool.ts';
import { msUntil } from '../../core/runtime.ts';
import type { Watches } from '../caches/watches.ts';
import { podProblem } from '../observed/pod-status.ts';
import { isFromPool, isUnclaimed } from '../observed/session-pods.ts';
import type { Problem } from '../observed/world.ts';
import { QueueController } from '../runtime/queue-controller.ts';
import type { StatusWriter } from '../runtime/status-writer.ts';
import { attachPods, createPods, type RefusedVersions, removePod } from './act.ts';
import { emptyPoolMemory, type PoolMemory, type PoolTools } from './context.ts';
import { decidePool, type PoolDecision, STARTS_PAUSE_MS, startsAfter } from './decide.ts';
import { removeLeftovers } from './leftovers.ts';
import { observePool } from './observe.ts';
import type { PoolWorld } from './pool-world.ts';
import { type PoolTemplate, poolTemplate } from './template.ts';

export interface PoolsOptions extends PoolTools {
  statuses: StatusWriter;
  /** Handler of a claim of a pool's pod, with the seconds from the decision to the claim. */
  onClaimed(seconds: number): void;
}

/** Minimum time between two writes of a status in which only numbers differ. */
const WRITE_MS = 1_000;

/**
 * Keeps the pods of SessionPools: creates and attaches them before they are needed, gives them up to whoever waits, and
 * reports what it does in the pools' statuses. Sessions claim the pods themselves: see `act/claim-pod.ts`.
 */
export class Pools extends QueueController {
  readonly #options: PoolsOptions;
  readonly #memories = new Map<string, PoolMemory>();
  readonly #refused: RefusedVersions = new Map();

  constructor(options: PoolsOptions) {
    super(options, { name: 'session pools', workers: 2, backoff: { baseMs: 100, maxMs: 60_000 } });
    this.#options = options;
  }

  /** Begins to reconcile pools. The gate of a new leader must be open: before, pods may be claimed by its predecessor. */
  override start(): void {
    this.changedAll();
    this.#known();
    super.start();
  }

  override get watches(): Watches {
    return {
      pool: (namespace, name) => this.changed(namespace, name),
      pod: (pod) => this.podChanged(pod),
      class: (name) => {
        for (const { metadata, spec } of this.#options.caches.allPools()) {
          if (spec.class === name) this.changed(metadata.namespace, metadata.name);
        }
      },
      poolsKnown: () => this.#known(),
      // Unclaimed pods of a pool that is gone were left where it could not be read.
      namespaces: () => this.#known(),
    };
  }

  /** Requeues the pools of all unclaimed pods, those that are gone too: it has become known which there are. */
  #known(): void {
    for (const pod of this.#options.caches.allPods()) if (isUnclaimed(pod)) this.podChanged(pod);
  }

  changed(namespace: string, name: string): void {
    this.requeue(namespace, name);
  }

  /** Requeues the pool of a pod, that of a claimed one later; and all pools where a session's pod finds no node. */
  podChanged(pod: StoredPod): void {
    const { namespace, name, labels, uid, resourceVersion } = pod.metadata;
    if (this.#refused.get(uid) !== resourceVersion) this.#refused.delete(uid);
    const pool = labels?.[LABEL_POOL];
    if (pool !== undefined && isFromPool(name)) {
      const memory = this.#memories.get(`${namespace}/${pool}`);
      if (memory?.uid === poolOfPod(name)) memory?.numbers.sawPod(numberOfPod(name));
      if (isUnclaimed(pod)) this.changed(namespace, pool);
      else this.#changedByStart(namespace, pool);
    }
    if (!isUnclaimed(pod) && podProblem(pod)?.reason === 'Unschedulable') this.changedAll();
  }

  /**
   * Requeues a pool after a session has claimed one of its pods, or found none. It does so after the pause, before which no pod
   * is made: earlier, the numbers in the status would be written while the session's runner is bound.
   */
  #changedByStart(namespace: string, name: string): void {
    this.queue.addAfter(`${namespace}/${name}`, STARTS_PAUSE_MS);
  }

  changedAll(): void {
    for (const { metadata } of this.#options.caches.allPools()) this.changed(metadata.namespace, metadata.name);
  }

  /**
   * Counts the start of a session with a pod of the pool, or without because there was none. `tookMs`: time from the decision to the
   * claim, milliseconds.
   */
  count(what: 'claimed' | 'missed', namespace: string, name: string, tookMs?: number): void {
    if (tookMs !== undefined) this.#options.onClaimed(tookMs / 1000);
    const pool = this.#options.caches.pool(namespace, name);
    if (pool === undefined || pool === 'Missing') return;
    const memory = this.#memory(keyOf(pool.metadata), pool);
    memory.counts[what]++;
    memory.starts = startsAfter(memory.starts, this.#options.clock.monotonic());
    this.#changedByStart(namespace, name);
  }

  /** Observe, decide and remember without an await. Then act and write the status. */
  protected override async reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { caches, ledger, clock, log } = this.#options;
    const { namespace, name } = refOf(key);
    const pool = caches.pool(namespace, name);
    if (caches.closed(namespace)) return undefined;
    const leftoversMs = await removeLeftovers(this.#options, namespace, name, pool, this.#refused, signal);
    if (pool === 'Missing') this.#memories.delete(key);
    if (pool === undefined || pool === 'Missing') return finite(leftoversMs);
    const memory = this.#memory(key, pool);
    const template = this.#template(pool);
    const world = observePool(this.#options, pool, template, memory);
    const decided = decidePool(world);
    this.#remember(memory, world, decided);
    log.debug({ pool: key, create: decided.create, remove: decided.remove.length }, 'pool reconciled');
    attachPods(this.#options, world);
    if (decided.offers) ledger.requeueClaimants({ namespace, class: pool.spec.class });
    // Nothing is created or removed before people can see why.
    const writeMs = await this.#write(pool, decided.status, memory, signal);
    for (const removal of decided.remove) {
      if (await removePod(this.#options, removal, this.#refused, signal)) memory.removed.add(removal.pod.metadata.uid);
    }
    if ('settings' in template) await createPods(this.#options, pool, template, decided.create, memory, signal);
    return finite(Math.min(msUntil(clock, decided.wakeAt, world.now), writeMs, leftoversMs));
  }

  #template({ metadata: { namespace }, spec }: StoredSessionPool): PoolTemplate | Problem {
    const { caches, installation } = this.#options;
    return poolTemplate(
      { namespace, class: spec.class },
      caches.class(spec.class),
      installation,
      caches.namespaceLabels(namespace),
    );
  }

  #remember(memory: PoolMemory, { pool, monotonic, starts }: PoolWorld, decided: PoolDecision): void {
    memory.failures = decided.failures;
    memory.claimable = decided.claimable;
    memory.starts = decided.create > 0 ? undefined : starts;
    if (decided.gaveWay) memory.gaveWayAt = monotonic;
    const present = new Set(this.#options.caches.unclaimedPods(pool.metadata.uid).map(({ metadata }) => metadata.uid));
    for (const uid of memory.removed) if (!present.has(uid)) memory.removed.delete(uid);
  }

  /** Writes the status where it differs. Resolves with the milliseconds until numbers that differ are written. */
  async #write(
    pool: StoredSessionPool,
    status: SessionPoolStatus,
    memory: PoolMemory,
    signal: AbortSignal,
  ): Promise<number> {
    const { statuses, clock } = this.#options;
    const before = pool.status ?? {};
    if (isDeepStrictEqual(JSON.parse(JSON.stringify(status)), JSON.parse(JSON.stringify(before))))
      return Number.POSITIVE_INFINITY;
    const left = memory.writtenAt + WRITE_MS - clock.monotonic();
    if (left > 0) return left;
    const { claimed, missed } = memory.counts;
    memory.writtenAt = clock.monotonic();
    await statuses.write(sessionpools, pool.metadata, status, signal);
    // Sessions may have been counted during the write.
    memory.counts = { claimed: memory.counts.claimed - claimed, missed: memory.counts.missed - missed };
    return Number.POSITIVE_INFINITY;
  }

  #memory(key: string, { metadata: { uid } }: StoredSessionPool): PoolMemory {
    let memory = this.#memories.get(key);
    if (memory?.uid !== uid) {
      memory = emptyPoolMemory(uid, this.#options.random);
      this.#memories.set(key, memory);
    }
    return memory;
  }
}

/** Milliseconds until the next reconcile; undefined: none is needed without an event. */
const finite = (ms: number) => (Number.isFinite(ms) ? Math.max(1, ms) : undefined);
