import { anySignal } from '../core/abort.ts';
import { refOf } from '../core/kube/cache.ts';
import type { KubeApi } from '../core/kube/types.ts';
import type { StoredTurn } from '../core/resources/kinds.ts';
import { isTerminal } from '../core/resources/turn-phases.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import type { Store } from '../core/store/store.ts';
import type { Effects, Leader } from './act/context.ts';
import { logCommit } from './act/log-commit.ts';
import { LogPlaces } from './act/log-places.ts';
import { StatePrefetch } from './act/state-prefetch.ts';
import type { Caches } from './caches/caches.ts';
import { AdmissionGate } from './capacity/admission-gate.ts';
import { Ledger } from './capacity/ledger.ts';
import { type ControllerConfig, servedNamespaces } from './config.ts';
import { Archives } from './environments/archives.ts';
import { Environments } from './environments/environments.ts';
import { Garbage } from './garbage/garbage.ts';
import { sessionStore } from './garbage/session-store.ts';
import type { MasterKeys } from './link/keys.ts';
import { Links } from './link/links.ts';
import type { Meter } from './meter.ts';
import { NetworkPolicies } from './network/policies.ts';
import { isWaitedFor } from './observed/urgency.ts';
import type { Installation } from './observed/world.ts';
import { Pools } from './pools/pools.ts';
import { Reconciler } from './reconcile.ts';
import type { ControllerTools } from './runtime/queue-controller.ts';
import { StatusWriter } from './runtime/status-writer.ts';
import { Sessions } from './sessions.ts';
import type { Notify } from './status/events.ts';

export interface PartsOptions {
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
  config: ControllerConfig;
  attachesPerNode: number;
  installation: Installation;
  /** Milliseconds until the previous leader's last request is dead; 0 when it released the lease. */
  predecessorMs: number;
  /** Signal that aborts when the leadership ends. */
  signal: AbortSignal;
  epoch(): number;
  /** Identity of this process, drawn at its start. */
  identity: string;
  /** Handler of a runner that has obeyed a later leader. */
  onLaterEpoch(epoch: number): void;
  notify: Notify;
  meter?: Meter;
}

/** How far the leadership has come; see `Leading`. */
export interface Progress {
  /** Reports whether the previous leader's last request is dead, and its effects have been read. */
  isReady(): boolean;
  onReady(): void;
  /** Handler of the time at which sessions may be admitted. */
  onOpen(): void;
  /** Signal that aborts when the leader has to stop. */
  closing: AbortSignal;
}

export type Parts = ReturnType<typeof partsOf>;

/** Makes the parts of a leader, connects them to one another, and has each called for what it watches. */
export function partsOf(options: PartsOptions, { isReady, onReady, onOpen, closing }: Progress) {
  const { api, caches, clock, random, log, notify, keys, signal, config, installation, epoch, meter } = options;
  const tools: ControllerTools = { api, clock, random, log, notify, signal, closing };
  const leader: Leader = { identity: options.identity, epoch, isReady };

  const committed = (turn: StoredTurn) =>
    logCommit({ caches, links, leader, log, committed: (key) => reconciler.memories.committed(key) }, turn);
  const statuses = new StatusWriter({
    api,
    onTurn: (turn) => {
      if (isTerminal(turn.status?.phase)) meter?.turnEnded(turn, classOf(caches, turn));
      committed(turn);
    },
  });
  const links = new Links({
    api,
    clock,
    random,
    log,
    keys,
    lingerMs: config.BERTH_ATTACH_LINGER,
    attachesPerNode: options.attachesPerNode,
    isWaitedFor: ({ key }) => {
      const { namespace, name } = refOf(key);
      const session = caches.session(namespace, name);
      const isPreempted = ledger.preemptFor(key) !== undefined;
      return !session || isWaitedFor(session, caches.turnsNaming(namespace, name), { isPreempted });
    },
    epoch,
    onChange: ({ key, uid }) => {
      if (uid !== '') return sessions.changed(key);
      const { namespace, name } = refOf(key);
      return pools.changed(namespace, name);
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
    refused: meter?.refused,
    counters: meter?.pods,
  });
  const ledger = new Ledger({
    caches,
    clock,
    maxRunning: config.BERTH_MAX_RUNNING,
    epoch,
    suspendAgainAt: (key) => reconciler.memories.suspendAgainAt(key),
    onChange: (key) => sessions.changed(key),
    onPoolPod: (pod) => pools.podChanged(pod),
    onVacancy: () => pools.changedAll(),
  });
  const admissionGate = new AdmissionGate({
    caches,
    clock,
    log,
    afterMs: options.predecessorMs,
    ready: onReady,
    queued: () => ledger.waiting(),
    inGroups: () => ledger.groups.waiting(),
    requeue: (key) => sessions.changedLast(key),
    reserve: (key, ms) => ledger.reservations.holdForLateWrite(key, ms),
    open: onOpen,
    signal: anySignal(signal, closing),
  });
  const intervalMs = config.BERTH_GARBAGE_INTERVAL;
  const networkPolicies = new NetworkPolicies({ ...tools, caches, epoch, intervalMs: intervalMs * 10 });
  const environments = new Environments({ ...tools, statuses, caches, store: options.store, installation });
  const pools = new Pools({
    ...tools,
    statuses,
    caches,
    links,
    ledger,
    networkPolicies,
    installation,
    onClaimed: (seconds) => meter?.claimed(seconds),
  });
  const garbage = new Garbage({
    ...tools,
    caches,
    store: options.store,
    ownTime: options.ownTime,
    ...servedNamespaces(config),
    intervalMs,
    nodeGraceMs: installation.nodeGraceMs,
  });
  const rooms: Effects['rooms'] = { makeRoom: (namespace, bytes) => garbage.makeRoom(namespace, bytes) };
  const effects: Effects = {
    api,
    statuses,
    logCommit: committed,
    caches,
    store: sessionStore(options.store, rooms.makeRoom),
    rooms,
    archives: new Archives(),
    statePrefetch: new StatePrefetch(clock),
    logPlaces: new LogPlaces(),
    links,
    ledger,
    networkPolicies,
    pools,
    keys,
    leader,
    clock,
    ownTime: options.ownTime,
    random,
    log,
    withoutWorker: (work) => sessions.withoutWorker(work),
    notify,
  };
  const reconciler = new Reconciler({
    effects,
    installation,
    closing,
    onNoSlotWanted: (key) => admissionGate.reconciled(key),
  });
  const workers = config.BERTH_WORKERS;
  const sessions = new Sessions({ ...tools, caches, reconciler, admissionGate, isReady, workers, meter });
  // A pod's end is remembered, and the counts are right, before the first reconcile that this brings.
  const { memories } = reconciler;
  for (const { watches } of [memories, links, ledger, sessions, garbage, networkPolicies, environments, pools]) {
    caches.watch(watches, closing);
  }
  return { sessions, pools, environments, networkPolicies, garbage, links, ledger, admissionGate };
}

/** Class of a turn's session; empty where no such class exists, as users may write any name. */
function classOf(caches: Pick<Caches, 'session' | 'class'>, { metadata, spec }: StoredTurn): string {
  const name = caches.session(metadata.namespace, spec.session)?.spec.class ?? '';
  return caches.class(name) ? name : '';
}
