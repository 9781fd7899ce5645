import { isDeepStrictEqual } from 'node:util';
import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf, refOf } from '../../core/kube/cache.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound, TransportError } from '../../core/kube/errors.ts';
import { pods as podKind } from '../../core/kube/resources.ts';
import { type StoredSessionPool, sessionpools } from '../../core/resources/kinds.ts';
import {
  LABEL_CLASS,
  LABEL_POOL,
  LABEL_POOL_UID,
  numberOfPod,
  poolOfPod,
  poolPodName,
} from '../../core/resources/names.ts';
import type { SessionPoolStatus } from '../../core/resources/sessionpool.ts';
import { leapsOf, msUntil } from '../../core/runtime.ts';
import type { PoolCounts } from '../act/context.ts';
import { refusal } from '../act/refusal.ts';
import type { Caches } from '../caches/caches.ts';
import type { Watches } from '../caches/watches.ts';
import type { Ledger } from '../capacity/ledger.ts';
import { attachability, type Links } from '../link/links.ts';
import type { Meter } from '../meter.ts';
import type { NetworkPolicies } from '../network/policies.ts';
import { givenUpAt, podProblem } from '../observed/pod-status.ts';
import { isFromPool, isUnclaimed } from '../observed/session-pods.ts';
import type { Installation, Problem } from '../observed/world.ts';
import { poolPod } from '../pod/pod.ts';
import { type ControllerTools, QueueController } from '../runtime/queue-controller.ts';
import type { StatusWriter } from '../runtime/status-writer.ts';
import { hasAnswered } from './claimable.ts';
import { decidePool, type PoolDecision, pausedFor, STARTS_LIMIT_MS, STARTS_PAUSE_MS, startsAfter } from './decide.ts';
import { PodNumbers } from './pod-numbers.ts';
import type { PoolFailures, PoolPod, PoolWorld } from './pool-world.ts';
import { type PoolTemplate, poolTemplate } from './template.ts';

export interface PoolsOptions extends ControllerTools {
  statuses: StatusWriter;
  caches: Caches;
  links: Links;
  ledger: Ledger;
  networkPolicies: Pick<NetworkPolicies, 'ensure'>;
  installation: Installation;
  meter?: Pick<Meter, 'claimed'> | undefined;
}

/** Memory of this leader about one pool; its loss is harmless. */
interface PoolMemory {
  uid: string;
  failures: PoolFailures | undefined;
  starts: PoolWorld['starts'];
  counts: { claimed: number; missed: number };
  /** Time of the last removal for a session that waits for quota or a node, monotonic milliseconds. */
  gaveWayAt: number;
  /** Time of the last write of the status, monotonic milliseconds. */
  writtenAt: number;
  /** Pods that the API server has been asked to delete, by uid. */
  removed: Set<string>;
  /** Pods that no session had taken at the last reconcile, as `uid ready` or `uid starting`. */
  claimable: Set<string>;
  numbers: PodNumbers;
}

/** Minimum time between two writes of a status in which only numbers differ. */
const WRITE_MS = 1_000;

/**
 * Keeps the pods of SessionPools: creates and attaches them before they are needed, gives them up to whoever waits, and
 * tells what it does in the pools' statuses. Sessions claim the pods themselves: see `act/claim-pod.ts`.
 */
export class Pools extends QueueController implements PoolCounts {
  readonly #options: PoolsOptions;
  readonly #memories = new Map<string, PoolMemory>();

  constructor(options: PoolsOptions) {
    super(options, { name: 'session pools', workers: 2, backoff: { baseMs: 100, maxMs: 60_000 } });
    this.#options = options;
  }

  /** Begins to reconcile pools. The gate of a new leader must be open: before, pods may be claimed by its predecessor. */
  override start(): void {
    const { caches } = this.#options;
    for (const { metadata } of caches.allPools()) this.changed(metadata.namespace, metadata.name);
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
    const { namespace, name, labels } = pod.metadata;
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
   * Requeues a pool after a session has claimed one of its pods, or found none: no pod is made before the pause is over, and the
   * numbers in the status would be written while the session's runner is bound.
   */
  #changedByStart(namespace: string, name: string): void {
    this.queue.addAfter(`${namespace}/${name}`, STARTS_PAUSE_MS);
  }

  changedAll(): void {
    for (const { metadata } of this.#options.caches.allPools()) this.changed(metadata.namespace, metadata.name);
  }

  /** Counts the start of a session, with a pod of the pool, or without because there was none. */
  count(what: 'claimed' | 'missed', namespace: string, name: string, tookMs?: number): void {
    if (tookMs !== undefined) this.#options.meter?.claimed(tookMs / 1000);
    const pool = this.#options.caches.pool(namespace, name);
    if (pool === undefined || pool === 'Missing') return;
    const memory = this.#memory(keyOf(pool.metadata), pool);
    memory.counts[what]++;
    this.#sawStart(memory);
    this.#changedByStart(namespace, name);
  }

  #sawStart(memory: PoolMemory): void {
    memory.starts = startsAfter(memory.starts, this.#options.clock.monotonic());
  }

  /** Reports whether a session of the class has a new pod whose runner has not been bound yet. */
  #isSessionStarting({ namespace, class: ofClass }: { namespace: string; class: string }): boolean {
    const { caches, links, clock } = this.#options;
    const oldest = clock.now() - STARTS_LIMIT_MS;
    return caches.allPods().some((pod) => {
      const { labels, deletionTimestamp, creationTimestamp, uid } = pod.metadata;
      if (pod.metadata.namespace !== namespace || labels?.[LABEL_CLASS] !== ofClass || isUnclaimed(pod)) return false;
      if (deletionTimestamp || Date.parse(creationTimestamp) < oldest) return false;
      const phase = links.get(uid)?.view.phase;
      return phase === 'Opening' || phase === 'Unbound' || phase === 'Binding';
    });
  }

  protected override async reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const { caches, clock, log } = this.#options;
    const { namespace = '', name } = refOf(key);
    const pool = caches.pool(namespace, name);
    if (caches.closed(namespace)) return undefined;
    const straysMs = await this.#removeStrays(namespace, name, pool, signal);
    if (pool === 'Missing') this.#memories.delete(key);
    if (pool === undefined || pool === 'Missing') return straysMs;
    const memory = this.#memory(key, pool);
    const template = this.#template(pool);
    const world = this.#observe(pool, template, memory);
    const decided = decidePool(world);
    memory.failures = decided.failures;
    if (decided.gaveWay) memory.gaveWayAt = world.monotonic;
    if (decided.create > 0) memory.starts = undefined;
    log.debug({ pool: key, create: decided.create, remove: decided.remove.length }, 'pool reconciled');
    // Nothing is created or removed before people can see why.
    const againMs = await this.#write(pool, decided.status, memory, signal);
    for (const { pod, why, force } of decided.remove)
      await this.#remove(pod, { why, force: force === true }, memory, signal);
    if ('settings' in template) await this.#create(pool, template, decided, memory, signal);
    const dueMs = Math.min(msUntil(clock, decided.wakeAt, world.now), againMs, straysMs ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(dueMs) ? Math.max(1, dueMs) : undefined;
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

  /** Gathers what a decision depends on. Opens the links of pods that have none. */
  #observe(pool: StoredSessionPool, template: PoolWorld['template'], memory: PoolMemory): PoolWorld {
    const { caches, links, ledger, clock, installation } = this.#options;
    const { namespace, name, uid } = pool.metadata;
    const space = { namespace, class: pool.spec.class };
    const unclaimed = caches.unclaimedPods(uid);
    const pods = unclaimed.filter(({ metadata }) => metadata.deletionTimestamp || !memory.removed.has(metadata.uid));
    for (const removed of memory.removed) {
      if (!unclaimed.some(({ metadata }) => metadata.uid === removed)) memory.removed.delete(removed);
    }
    const observed = pods.map((pod): PoolPod => {
      if (!pod.metadata.deletionTimestamp && !links.get(pod.metadata.uid))
        links.open(pod, { key: `${namespace}/${name}`, uid: '', incarnation: 0 }).open(attachability(pod));
      return {
        pod,
        link: links.get(pod.metadata.uid)?.view,
        node: caches.node(pod.spec.nodeName),
        taken: ledger.isTaken(namespace, pod.metadata.name),
        yields: ledger.yields(namespace, pod.metadata.name),
      };
    });
    if (observed.some(({ taken }) => taken) || this.#isSessionStarting(space)) this.#sawStart(memory);
    // A pod can be claimed while it starts, and again once it has answered.
    const claimable = new Set(
      observed
        .filter(({ taken }) => !taken)
        .map(({ pod, link }) => `${pod.metadata.uid} ${hasAnswered(link) ? 'ready' : 'starting'}`),
    );
    if ([...claimable].some((one) => !memory.claimable.has(one))) ledger.warmed(space);
    memory.claimable = claimable;
    return {
      now: clock.now(),
      monotonic: clock.monotonic(),
      leaps: leapsOf(clock),
      pool,
      template,
      pods: observed,
      room: ledger.room(space),
      most: ledger.most(space),
      cpus: caches.cpus(),
      blocked: this.#blocked(namespace),
      gaveWayAt: memory.gaveWayAt,
      starts: memory.starts,
      failures: memory.failures,
      counts: { ...memory.counts },
      protocol: installation.protocol,
      unresponsiveMs: installation.unresponsiveMs,
      nodeGraceMs: installation.nodeGraceMs,
    };
  }

  /** A session whose pod has no room in a quota of the namespace, or on any node. */
  #blocked(namespace: string): PoolWorld['blocked'] {
    const { caches } = this.#options;
    const quota = caches
      .allSessions()
      .find(({ metadata, status }) => metadata.namespace === namespace && status?.queue?.reason === 'QuotaExceeded');
    if (quota) return { session: keyOf(quota.metadata), reason: 'QuotaExceeded' };
    const pod = caches
      .allPods()
      .find(
        (one) => !isUnclaimed(one) && !one.metadata.deletionTimestamp && podProblem(one)?.reason === 'Unschedulable',
      );
    const owner = pod?.metadata.ownerReferences?.find(({ kind }) => kind === 'Session');
    return owner && pod ? { session: `${pod.metadata.namespace}/${owner.name}`, reason: 'Unschedulable' } : undefined;
  }

  async #create(
    pool: StoredSessionPool,
    { settings }: PoolTemplate,
    { create }: PoolDecision,
    memory: PoolMemory,
    signal: AbortSignal,
  ): Promise<void> {
    for (let left = create; left > 0; left--) {
      this.#options.closing.throwIfAborted();
      // A session has started meanwhile, which has the pool reconciled again.
      if (memory.starts) return;
      try {
        await this.#options.networkPolicies.ensure(pool.metadata.namespace, pool.spec.class, signal);
        if (!(await this.#createOne(pool, settings, memory, signal))) return;
      } catch (error) {
        if (error instanceof ApiError && !isConflict(error)) this.#refused(memory, error);
        throw error;
      }
    }
  }

  /** Creates a pod in a slot of its own. Resolves with false where no slot is free. */
  async #createOne(
    pool: StoredSessionPool,
    settings: PoolTemplate['settings'],
    memory: PoolMemory,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { ledger } = this.#options;
    const { namespace, uid } = pool.metadata;
    const number = memory.numbers.next;
    const name = poolPodName(uid, number);
    if (!ledger.reserveForPool({ namespace, class: pool.spec.class }, name)) return false;
    try {
      await this.#make(pool, number, settings, signal).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
        memory.numbers.sawPod(number);
        return this.#adopt(namespace, name, signal);
      });
      memory.numbers.sawPod(number);
    } catch (error) {
      ledger.failed(namespace, name, error);
      throw error;
    }
    ledger.confirm(namespace, name);
    return true;
  }

  async #make(
    pool: StoredSessionPool,
    number: number,
    settings: PoolTemplate['settings'],
    signal: AbortSignal,
  ): Promise<void> {
    const { api, links, log } = this.#options;
    const created = await api.create(podKind, poolPod(pool, number, settings), { signal });
    const key = keyOf(pool.metadata);
    links.open(created, { key, uid: '', incarnation: 0 }).open({ ...attachability(created), fresh: true });
    log.info({ pool: key, pod: created.metadata.name }, 'pool pod created');
  }

  /** Takes note of a pod that exists although the caches do not show it: an earlier attempt has made it, or somebody else has, who keeps it. */
  async #adopt(namespace: string, name: string, signal: AbortSignal): Promise<void> {
    const { api } = this.#options;
    await api.get(podKind, { namespace, name }, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) throw new TransportError(`pod ${name} existed and is gone by now; the pool gets another`);
      throw error;
    });
  }

  /** Remembers a refusal, so that the status says it, and so that events do not have a pod tried again at once. */
  #refused(memory: PoolMemory, error: ApiError): void {
    memory.failures = pausedFor((memory.failures?.count ?? 0) + 1, refusal(error), this.#options.clock.now());
  }

  /**
   * Deletes a pod exactly as it was decided upon: a claim that came first, perhaps one of an earlier leader, changes the pod's
   * version, and the deletion is refused.
   */
  async #remove(
    { metadata: { name, namespace, uid, resourceVersion } }: StoredPod,
    { why, force: isForced }: { why: string; force: boolean },
    memory: Pick<PoolMemory, 'removed'>,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, ledger, log, closing } = this.#options;
    // A session may have claimed the pod while another pod was removed.
    if (!isForced && !ledger.isSpare(namespace, name)) return;
    closing.throwIfAborted();
    log.info({ namespace, pod: name, why }, isForced ? 'pool pod removed without its node' : 'pool pod deleted');
    const force = isForced ? { gracePeriodSeconds: 0 } : {};
    await api
      .delete(podKind, { namespace, name }, { uid, resourceVersion, signal, ...force })
      .then(() => memory.removed.add(uid))
      .catch((error: unknown) => {
        if (!isNotFound(error) && !isConflict(error)) throw error;
      });
  }

  /**
   * Deletes unclaimed pods under the name of a pool that no pool keeps: it was deleted and left them, or pools are turned off.
   * While it is unknown whether there is a pool, they are deleted only for sessions that wait. Resolves with the milliseconds
   * until one on a node that does not answer is given up.
   */
  async #removeStrays(
    namespace: string,
    name: string,
    pool: StoredSessionPool | 'Missing' | undefined,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { caches, clock, ledger, installation } = this.#options;
    const memory = { removed: new Set<string>() };
    let nextAt = Number.POSITIVE_INFINITY;
    for (const pod of caches.allPods()) {
      const { labels, deletionTimestamp } = pod.metadata;
      if (pod.metadata.namespace !== namespace || labels?.[LABEL_POOL] !== name || !isUnclaimed(pod)) continue;
      if (typeof pool === 'object' && labels[LABEL_POOL_UID] === pool.metadata.uid) continue;
      if (deletionTimestamp) {
        const at = givenUpAt(pod, caches.node(pod.spec.nodeName), installation.nodeGraceMs) ?? nextAt;
        if (at <= clock.now())
          await this.#remove(pod, { why: 'its node does not answer', force: true }, memory, signal);
        else nextAt = Math.min(nextAt, at);
      } else if (pool !== undefined || ledger.yields(namespace, pod.metadata.name)) {
        const why = pool === undefined ? 'its slot goes to a session that waits' : 'no pool keeps it';
        await this.#remove(pod, { why, force: false }, memory, signal);
      }
    }
    return Number.isFinite(nextAt) ? Math.max(1, nextAt - clock.now()) : undefined;
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
      memory = {
        uid,
        failures: undefined,
        starts: undefined,
        counts: { claimed: 0, missed: 0 },
        gaveWayAt: Number.NEGATIVE_INFINITY,
        writtenAt: Number.NEGATIVE_INFINITY,
        removed: new Set(),
        claimable: new Set(),
        numbers: new PodNumbers(this.#options.random),
      };
      this.#memories.set(key, memory);
    }
    return memory;
  }
}
