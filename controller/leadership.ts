import { refOf } from '../core/kube/cache.ts';
import type { KubeApi } from '../core/kube/types.ts';
import type { StoredTurn } from '../core/resources/kinds.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import type { Store, StoreKey, StoreUsage } from '../core/store/store.ts';
import type { Effects } from './act/context.ts';
import { logCommit } from './act/log-commit.ts';
import { LogPlaces } from './act/log-places.ts';
import { StatePrefetch } from './act/state-prefetch.ts';
import type { Caches } from './caches/caches.ts';
import { AdmissionGate } from './capacity/admission-gate.ts';
import { Ledger } from './capacity/ledger.ts';
import { Archives } from './environments/archives.ts';
import { Environments } from './environments/environments.ts';
import { Garbage } from './garbage/garbage.ts';
import { yieldingStore } from './garbage/yielding-store.ts';
import type { MasterKeys } from './link/keys.ts';
import { Links } from './link/links.ts';
import type { Inventory, Meter } from './meter.ts';
import { NetworkPolicies } from './network/policies.ts';
import { isWaitedFor } from './observed/urgency.ts';
import type { Installation } from './observed/world.ts';
import { Pools } from './pools/pools.ts';
import { Reconciler } from './reconcile.ts';
import type { ControllerTools } from './runtime/queue-controller.ts';
import { StatusWriter } from './runtime/status-writer.ts';
import { Sessions } from './sessions.ts';
import type { Notify } from './status/events.ts';

export interface LeadershipOptions {
  /** API client whose writes end with the lease. */
  api: KubeApi;
  caches: Caches;
  store: Store;
  keys: MasterKeys;
  clock: Clock;
  /** Time by this machine's clock, milliseconds since the epoch. */
  ownTime(): number;
  random: Random;
  log: Logger;
  installation: Installation;
  /** Namespaces that are served; absent: all. */
  namespaces?: readonly string[];
  /** Milliseconds after the last message to an idle runner after which its attach is closed. */
  attachLingerMs: number;
  /** Attaches to the pods of one node that may be opened at once. */
  attachesPerNode: number;
  /** Minimum milliseconds between two sweeps of the same session for garbage. */
  garbageIntervalMs: number;
  maxRunning: number | undefined;
  workers: number;
  /** Milliseconds until the previous leader's last request is dead; 0 when it released the lease. */
  predecessorMs: number;
  /** Called when that time is over. */
  onReady(): void;
  /** Signal that aborts when the leadership ends. */
  signal: AbortSignal;
  epoch(): number;
  /** Identity of this process, drawn at its start. */
  identity: string;
  /** Called when a runner has obeyed a later leader. */
  onLaterEpoch(epoch: number): void;
  notify: Notify;
  meter?: Meter;
}

/** The work of a controller while it leads: everything but watching. */
export class Leading {
  readonly #options: LeadershipOptions;
  readonly #sessions: Sessions;
  readonly #reconciler: Reconciler;
  readonly #links: Links;
  readonly #ledger: Ledger;
  readonly #admissionGate: AdmissionGate;
  readonly #garbage: Garbage;
  readonly #networkPolicies: NetworkPolicies;
  readonly #environments: Environments;
  readonly #pools: Pools;
  readonly #closing = new AbortController();
  /** True once the previous leader's last request is dead, and its effects have been read. */
  #isReady = false;
  /** True once sessions are admitted. */
  #isOpen = false;

  constructor(options: LeadershipOptions) {
    const { api, caches, clock, random, log, notify, keys, signal } = options;
    this.#options = options;
    const tools: ControllerTools = { api, clock, random, log, notify, signal, closing: this.#closing.signal };
    const statuses = new StatusWriter({ api, onTurn: (turn) => this.#turnWritten(turn) });
    this.#links = new Links({
      api,
      clock,
      random,
      log,
      keys,
      lingerMs: options.attachLingerMs,
      attachesPerNode: options.attachesPerNode,
      isWaitedFor: ({ key }) => {
        const { namespace, name } = refOf(key);
        const session = caches.session(namespace, name);
        const isPreempted = this.#ledger.preemptFor(key) !== undefined;
        return !session || isWaitedFor(session, caches.turnsNaming(namespace, name), { isPreempted });
      },
      epoch: options.epoch,
      onChange: ({ key, uid }) => {
        if (uid !== '') return this.#sessions.changed(key);
        const { namespace, name } = refOf(key);
        return this.#pools.changed(namespace, name);
      },
      onThrottled: ({ key, uid }, pod) => {
        const { namespace, name } = refOf(key);
        const message = `Pod ${pod} prints more on its stdout than is read; its output is slowed down.`;
        const event = { type: 'Warning', reason: 'OutputThrottled', message } as const;
        if (uid !== '') return notify({ metadata: { namespace, name, uid } }, event);
        const pool = caches.pool(namespace, name);
        if (pool && pool !== 'Missing') notify(pool, event, 'SessionPool');
      },
      onLaterEpoch: options.onLaterEpoch,
      refused: options.meter?.refused,
      counters: options.meter?.pods,
    });
    this.#ledger = new Ledger({
      caches,
      clock,
      maxRunning: options.maxRunning,
      epoch: options.epoch,
      suspendAgainAt: (key) => this.#reconciler.memories.suspendAgainAt(key),
      onChange: (key) => this.#sessions.changed(key),
      onPoolPod: (pod) => this.#pools.podChanged(pod),
      onVacancy: () => this.#pools.changedAll(),
    });
    this.#admissionGate = new AdmissionGate({
      caches,
      clock,
      log,
      afterMs: options.predecessorMs,
      ready: () => this.#ready(),
      queued: () => this.#ledger.waiting(),
      inGroups: () => this.#ledger.groups.waiting(),
      requeue: (key) => this.#sessions.changedLast(key),
      reserve: (key, ms) => this.#ledger.reserveForLateWrite(key, ms),
      open: () => this.#open(),
      signal: AbortSignal.any([signal, this.#closing.signal]),
    });
    this.#networkPolicies = new NetworkPolicies({
      ...tools,
      caches,
      epoch: options.epoch,
      intervalMs: options.garbageIntervalMs * 10,
    });
    this.#environments = new Environments({
      ...tools,
      statuses,
      caches,
      store: options.store,
      installation: options.installation,
    });
    this.#pools = new Pools({
      ...tools,
      statuses,
      caches,
      links: this.#links,
      ledger: this.#ledger,
      networkPolicies: this.#networkPolicies,
      installation: options.installation,
      meter: options.meter,
    });
    const rooms: Effects['rooms'] = {
      makeRoom: (namespace, bytes) => this.#garbage.makeRoom(namespace, bytes),
    };
    const effects: Effects = {
      api,
      statuses,
      logCommit: (turn) => this.#logCommit(turn),
      caches,
      store: yieldingStore(options.store, rooms.makeRoom),
      rooms,
      archives: new Archives(),
      statePrefetch: new StatePrefetch(clock),
      logPlaces: new LogPlaces(),
      links: this.#links,
      ledger: this.#ledger,
      networkPolicies: this.#networkPolicies,
      pools: this.#pools,
      keys,
      leader: {
        identity: options.identity,
        epoch: options.epoch,
        isReady: () => this.#isReady,
      },
      clock,
      ownTime: options.ownTime,
      random,
      log,
      withoutWorker: (work) => this.#sessions.withoutWorker(work),
      notify,
    };
    this.#garbage = new Garbage({
      ...tools,
      caches,
      store: options.store,
      ownTime: options.ownTime,
      ...(options.namespaces ? { namespaces: options.namespaces } : {}),
      intervalMs: options.garbageIntervalMs,
      nodeGraceMs: options.installation.nodeGraceMs,
    });
    this.#reconciler = new Reconciler({
      effects,
      installation: options.installation,
      closing: this.#closing.signal,
      onNoSlotWanted: (key) => this.#admissionGate.reconciled(key),
    });
    this.#sessions = new Sessions({
      ...tools,
      caches,
      reconciler: this.#reconciler,
      admissionGate: this.#admissionGate,
      isReady: () => this.#isReady,
      workers: options.workers,
      meter: options.meter,
    });
    // A pod's end is remembered, and the counts are right, before the first reconcile that this brings.
    const { memories } = this.#reconciler;
    const parts = [memories, this.#links, this.#ledger, this.#sessions, this.#garbage, this.#networkPolicies];
    for (const { watches } of [...parts, this.#environments, this.#pools]) {
      caches.watch(watches, this.#closing.signal);
    }
  }

  /**
   * Reconciles all sessions. New sessions are admitted, turns put in order and given to runners at once, or when a
   * deposed leader's requests are dead.
   */
  start(): void {
    this.#sessions.changedAll();
    this.#admissionGate.start();
    this.#sessions.start();
    this.#garbage.start();
    this.#networkPolicies.start();
  }

  #ready(): void {
    this.#isReady = true;
    this.#options.onReady();
    this.#environments.start();
    this.#sessions.changedAll();
  }

  #open(): void {
    this.#isOpen = true;
    this.#ledger.open();
    this.#pools.start();
    this.#sessions.changedAll();
  }

  /** Milliseconds for which sessions have waited while none was reconciled. */
  get stalledMs(): number {
    return this.#sessions.stalledMs;
  }

  get inventory(): Inventory {
    const { caches, maxRunning } = this.#options;
    const garbage = this.#garbage;
    const [sessions, pods] = [caches.allSessions(), caches.allPods()];
    return {
      sessions,
      pods,
      pools: caches.allPools(),
      tally: this.#ledger.tally,
      attached: this.#links.attached,
      maxRunning,
      class: (name) => caches.class(name),
      // Most readers of an inventory need neither sum.
      get inputBytes() {
        return caches.allTurns().reduce((sum, { input }) => sum + input.bytes, 0);
      },
      get historyBytes() {
        return garbage.historyBytes;
      },
    };
  }

  storeUsage(signal: AbortSignal): Promise<StoreUsage> {
    return this.#options.store.usage(signal);
  }

  /** Content of the session was stored. */
  stored(key: string, kind: StoreKey['kind'], bytes: number): void {
    this.#garbage.stored(key, kind, bytes);
  }

  /**
   * Starts no new effects; running ones are finished within `graceMs`, or left for the successor to find. Resolves with
   * whether all were finished: a request that was cut off, or one of the previous leader, may still take effect.
   */
  async stop(graceMs: number): Promise<boolean> {
    this.#closing.abort(new Error('the controller is stopping'));
    this.#ledger.close();
    const [areDone] = await Promise.all([
      Promise.all([this.#sessions, this.#pools, this.#environments, this.#garbage].map((each) => each.stop(graceMs))),
      // A request for a NetworkPolicy that is left under way takes no slot.
      this.#networkPolicies.stop(graceMs),
    ]);
    this.#links.closeAll();
    return this.#isOpen && areDone.every((isDone) => isDone);
  }

  /** The leader has written the turn's status. */
  #turnWritten(turn: StoredTurn): void {
    if (isTerminal(turn.status?.phase)) this.#options.meter?.turnEnded(turn, this.#classOf(turn));
    this.#logCommit(turn);
  }

  #logCommit(turn: StoredTurn): void {
    const { caches, identity, epoch, log } = this.#options;
    const committed = (key: string) => this.#reconciler.memories.committed(key);
    logCommit({ caches, links: this.#links, leader: { identity, epoch }, log, committed }, turn);
  }

  /** Class of a turn's session; empty where no such class exists, as users may write any name. */
  #classOf({ metadata, spec }: StoredTurn): string {
    const name = this.#options.caches.session(metadata.namespace, spec.session)?.spec.class ?? '';
    return this.#options.caches.class(name) ? name : '';
  }
}
