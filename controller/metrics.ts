import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { noneRefused } from '../core/frames/decode.ts';
import { ApiError, TransportError } from '../core/kube/errors.ts';
import { measureRequests } from '../core/program/metrics.ts';
import type { StoredTurn } from '../core/resources/kinds.ts';
import { PROTECTIONS } from '../core/resources/sandbox.ts';
import { sessionPhase } from '../core/resources/session.ts';
import type { SessionPoolStatus } from '../core/resources/sessionpool.ts';
import type { StoreUsage } from '../core/store/store.ts';
import { isProgrammingError } from './decide/broken.ts';
import { nothingKept } from './link/pod-counters.ts';
import type { Inventory, Meter, ReconcileResult } from './meter.ts';

/** Source of the values that are read at each scrape. */
export interface Measured {
  readonly isLeading: boolean;
  /** Inventory of the leader; undefined where another leads. */
  readonly inventory: Inventory | undefined;
  /** Resolves with undefined where another leads. */
  storeUsage(signal: AbortSignal): Promise<StoreUsage | undefined>;
}

/** Maximum milliseconds that a scrape waits for the store to be counted. */
const COUNT_MS = 5_000;

const TURN_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200];
const POD_PHASES = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown', 'Terminating'];
const LEADER = 'Told by the leader alone.';

/**
 * Metrics of the controller. Labels are classes that exist, and words of Berth, Kubernetes and HTTP: never a name that
 * users can choose freely.
 */
export class ControllerMetrics implements Meter {
  readonly registry = new Registry();
  readonly refused = noneRefused();
  readonly pods = nothingKept();
  /** Callback for the `KubeClient`. */
  readonly onRequest = measureRequests(this.registry);
  /** The controller; set once it exists. */
  measured: Measured | undefined;
  readonly #turns = new Counter({
    name: 'berth_turns_total',
    help: 'Turns that have ended, each counted once: when its end is committed, by the leader that committed it. code is that of status.error, empty where the turn succeeded. A commit whose answer was lost is not counted.',
    labelNames: ['class', 'phase', 'code'],
    registers: [this.registry],
  });
  readonly #durations = new Histogram({
    name: 'berth_turn_duration_seconds',
    help: 'From the start of the agent to the end of the turn, waiting for decisions included. Of turns in berth_turns_total with a status.startedAt.',
    labelNames: ['class', 'phase'],
    buckets: TURN_SECONDS,
    registers: [this.registry],
  });
  readonly #queueing = new Histogram({
    name: 'berth_turn_queue_seconds',
    help: 'From the creation of a turn, which Kubernetes tells in whole seconds, to the start of its agent. Of the same turns.',
    labelNames: ['class'],
    buckets: TURN_SECONDS,
    registers: [this.registry],
  });
  readonly #reconciles = new Counter({
    name: 'berth_reconcile_total',
    help: 'Reconciles of sessions by result: success, requeue_after (reconciled again later), error, stopped.',
    labelNames: ['result'],
    registers: [this.registry],
  });
  readonly #reconcileSeconds = new Histogram({
    name: 'berth_reconcile_duration_seconds',
    help: 'How long a look at a session took, with everything that was done for it.',
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [this.registry],
  });
  readonly #reconcileErrors = new Counter({
    name: 'berth_reconcile_errors_total',
    help: 'Failed reconciles of sessions by the HTTP status of the Kubernetes API, or "TransportError", "ProgrammingError" or "Other". Each is tried again; a ProgrammingError that comes again and again ends its turn as InternalError.',
    labelNames: ['code'],
    registers: [this.registry],
  });
  readonly #claims = new Histogram({
    name: 'berth_pool_claim_seconds',
    help: 'From the decision to start a session with a ready pod of a pool to the write that makes the pod its own.',
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
    registers: [this.registry],
  });

  constructor() {
    this.#measureFrames();
    this.#measureInventory();
    this.#measurePools();
    this.#measureStore();
  }

  turnEnded({ metadata, status = {} }: StoredTurn, sessionClass: string): void {
    const { phase = '', startedAt, finishedAt, error } = status;
    const labels = { class: sessionClass, phase };
    this.#turns.inc({ ...labels, code: error?.code ?? '' });
    if (!startedAt) return;
    this.#queueing.observe({ class: sessionClass }, seconds(metadata.creationTimestamp, startedAt));
    if (finishedAt) this.#durations.observe(labels, seconds(startedAt, finishedAt));
  }

  claimed(tookSeconds: number): void {
    this.#claims.observe(tookSeconds);
  }

  reconciled(result: ReconcileResult, tookSeconds: number, error?: unknown): void {
    this.#reconciles.inc({ result });
    this.#reconcileSeconds.observe(tookSeconds);
    if (result === 'error') this.#reconcileErrors.inc({ code: codeOf(error) });
  }

  /** The counters are kept by the links and only read here. */
  #measureFrames(): void {
    const { refused, pods, registry } = this;
    const counter = (name: string, help: string, read: () => number) =>
      new Counter({
        name,
        help,
        registers: [registry],
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    new Counter({
      name: 'berth_frames_refused_total',
      help: 'Pieces of frames on the stdout of session pods that had no effect. repeated, early, unkeyed and torn occur when a connection begins or breaks. foreign, malformed and tooLarge do not occur by accident. forged occurs by accident only after a change of the master key, for pods that were bound before.',
      labelNames: ['reason'],
      registers: [registry],
      collect() {
        const { junkBytes: _, ...reasons } = refused;
        this.reset();
        for (const [reason, count] of Object.entries(reasons)) this.inc({ reason }, count);
      },
    });
    counter(
      'berth_frames_junk_bytes_total',
      'Bytes on the stdout of session pods that are no part of a frame.',
      () => refused.junkBytes,
    );
    counter(
      'berth_ended_logs_cut_total',
      'Logs of ended containers whose beginning was not read, because they are full of text that looks like frames.',
      () => pods.logsCut,
    );
    counter(
      'berth_pod_messages_delayed_total',
      'Messages of session pods that waited for room in the memory for what is not stored yet.',
      () => pods.waitedForMemory,
    );
    counter(
      'berth_pod_pauses_total',
      'Pauses in the reading of session pods that print more on their stdout than runners do.',
      () => pods.pauses,
    );
  }

  #measureInventory(): void {
    const registers = [this.registry];
    const leading = () => this.measured?.isLeading === true;
    new Gauge({
      name: 'berth_leader',
      help: '1 where this controller leads, else 0.',
      registers,
      collect() {
        this.set(leading() ? 1 : 0);
      },
    });
    const gauge = <T extends string>(name: string, help: string, labelNames: T[], read: Read<T>) =>
      this.#leaderGauge(name, help, labelNames, () => {
        const now = this.measured?.inventory;
        return now ? read(now) : [];
      });
    gauge('berth_sessions', 'Sessions by phase; New: not reconciled yet.', ['phase'], ({ sessions }) =>
      counted(
        'phase',
        ['New', ...sessionPhase.options],
        sessions.map(({ status }) => status?.phase ?? 'New'),
      ),
    );
    gauge('berth_pods', 'Pods of sessions by phase; Terminating: being deleted.', ['phase'], ({ pods }) =>
      counted(
        'phase',
        POD_PHASES,
        pods.map(({ metadata, status }) => (metadata.deletionTimestamp ? 'Terminating' : (status?.phase ?? 'Unknown'))),
      ),
    );
    gauge(
      'berth_sessions_unprotected',
      'Sessions with a pod whose runner reports less protection than that of this release gives, by the condition that is False.',
      ['condition'],
      ({ sessions }) =>
        counted(
          'condition',
          PROTECTIONS,
          sessions.flatMap(({ status }) =>
            PROTECTIONS.filter((name) =>
              status?.conditions?.some((condition) => condition.type === name && condition.status === 'False'),
            ),
          ),
        ),
    );
    gauge('berth_queue_length', 'Sessions that wait, by the reason in status.queue.', ['reason'], ({ sessions }) =>
      counted(
        'reason',
        ['AtCapacity', 'CapacityUnknown', 'GroupLimit', 'QuotaExceeded', 'StoreShareUsed'],
        sessions.flatMap(({ status }) => status?.queue?.reason ?? []),
      ),
    );
    gauge('berth_attaches', 'Session pods that the controller is attached to.', [], ({ attached }) => [[{}, attached]]);
    gauge('berth_slots_used', 'Running slots that are taken, over everything.', [], ({ tally }) => [[{}, tally.total]]);
    gauge('berth_slots_limit', 'Running slots of the installation; absent: no limit.', [], ({ maxRunning }) =>
      maxRunning === undefined ? [] : [[{}, maxRunning]],
    );
    gauge(
      'berth_class_slots_used',
      'Running slots that the sessions of a class have, for classes that a session names.',
      ['class'],
      (now) => classesOf(now).map(([name]) => [{ class: name }, now.tally.ofClass(name)]),
    );
    gauge(
      'berth_class_slots_limit',
      'Running slots that the class allows (limits.maxRunning), for the same classes; absent: no limit.',
      ['class'],
      (now) => classesOf(now).flatMap(([name, limit]) => (limit === undefined ? [] : [[{ class: name }, limit]])),
    );
    gauge(
      'berth_turn_bytes',
      'Bytes of Turns in etcd. Live: inputs of turns that have not ended. Ended: ended turns that are kept, as JSON, when their sessions were last swept.',
      ['state'],
      ({ inputBytes, historyBytes }) => [
        [{ state: 'Live' }, inputBytes],
        [{ state: 'Ended' }, historyBytes],
      ],
    );
  }

  /** The totals are those of the pools' statuses, so that they go on with the next leader. */
  #measurePools(): void {
    const labelNames: ('namespace' | 'pool')[] = ['namespace', 'pool'];
    const read = (value: (status: SessionPoolStatus, replicas: number) => number) => () =>
      (this.measured?.inventory?.pools ?? []).map(
        ({ metadata: { namespace, name: pool }, status = {}, spec }): Samples<'namespace' | 'pool'>[number] => [
          { namespace, pool },
          value(status, spec.replicas),
        ],
      );
    const gauge = (name: string, help: string, value: Parameters<typeof read>[0]) =>
      this.#leaderGauge(name, help, labelNames, read(value));
    const counter = (name: string, help: string, value: Parameters<typeof read>[0]) =>
      new Counter({
        name,
        help: `${help} ${LEADER}`,
        labelNames,
        registers: [this.registry],
        collect() {
          this.reset();
          for (const [labels, total] of read(value)()) this.inc(labels, total);
        },
      });
    gauge('berth_pool_desired', 'Pods that a SessionPool is to keep ready.', (_status, replicas) => replicas);
    gauge('berth_pool_ready', 'Pods of a SessionPool that sessions can claim.', ({ ready = 0 }) => ready);
    counter(
      'berth_pool_claimed_total',
      'Starts of sessions with a ready pod of the SessionPool, since its creation.',
      ({ claimed = 0 }) => claimed,
    );
    counter(
      'berth_pool_missed_total',
      'Starts of sessions that found no ready pod of the SessionPool, since its creation.',
      ({ missed = 0 }) => missed,
    );
  }

  /** The store counts itself at most once a minute. A count that fails leaves the values out of the scrape. */
  #measureStore(): void {
    const usage = () => this.measured?.storeUsage(AbortSignal.timeout(COUNT_MS)).catch(() => undefined);
    const gauge = (name: string, help: string, value: (usage: StoreUsage) => number) =>
      this.#leaderGauge(name, help, [], async () => {
        const now = await usage();
        return now ? [[{}, value(now)]] : [];
      });
    gauge(
      'berth_store_bytes',
      'Bytes of states, outputs and logs in the store, up to a minute old.',
      (now) => now.bytes,
    );
    gauge('berth_store_ceiling_bytes', 'Maximum of berth_store_bytes.', (now) => now.ceiling);
    this.#leaderGauge(
      'berth_store_namespace_bytes',
      'Bytes of berth_store_bytes in each of the ten namespaces that hold the most, and in those with a quota.',
      ['namespace'],
      async () => {
        const { largest = [], limited = [] } = (await usage()) ?? {};
        // A namespace in both lists sets its series twice, to the same value.
        return [...largest, ...limited].map(({ namespace, bytes }) => [{ namespace }, bytes]);
      },
    );
    this.#leaderGauge(
      'berth_store_namespace_quota_bytes',
      'Maximum of berth_store_namespace_bytes; absent: no quota.',
      ['namespace'],
      async () => (await usage())?.limited.map(({ namespace, quota = 0 }) => [{ namespace }, quota]) ?? [],
    );
  }

  /** Registers a gauge whose values are read at each scrape; where there are none it is absent. */
  #leaderGauge<T extends string>(
    name: string,
    help: string,
    labelNames: T[],
    read: () => Samples<T> | Promise<Samples<T>>,
  ): void {
    new Gauge({
      name,
      help: `${help} ${LEADER}`,
      labelNames,
      registers: [this.registry],
      async collect() {
        const samples = await read();
        // reset() would leave a 0 where there is no value.
        if (labelNames.length > 0) this.reset();
        else this.remove();
        for (const [labels, value] of samples) this.set(labels, value);
      },
    });
  }
}

type Samples<T extends string> = [Partial<Record<T, string>>, number][];
type Read<T extends string> = (inventory: Inventory) => Samples<T>;

/** Number of occurrences of each value, also of known values without any. */
function counted<T extends string>(
  label: T,
  known: readonly string[],
  values: readonly string[],
): [Record<T, string>, number][] {
  const counts = new Map(known.map((value) => [value, 0]));
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].map(([value, count]) => [{ [label]: value } as Record<T, string>, count]);
}

/** Existing classes that a session names, with their limits. */
function classesOf({ sessions, class: classOf }: Inventory): [name: string, limit: number | undefined][] {
  const names = new Set(sessions.map(({ spec }) => spec.class));
  return [...names].flatMap((name) => {
    const found = classOf(name);
    return found ? [[name, found.spec.limits?.maxRunning]] : [];
  });
}

/** Seconds between two times, at least 0: the clocks of two machines may differ. */
function seconds(from: string, to: string): number {
  return Math.max(0, Date.parse(to) - Date.parse(from)) / 1000;
}

function codeOf(error: unknown): string {
  if (error instanceof ApiError) return String(error.code);
  if (error instanceof TransportError) return error.code;
  return isProgrammingError(error) ? 'ProgrammingError' : 'Other';
}
