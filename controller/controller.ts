import { anySignal } from '../core/abort.ts';
import { PROTOCOL_VERSION } from '../core/frames/messages.ts';
import type { KubeApi } from '../core/kube/types.ts';
import { API_GROUP_VERSION } from '../core/resources/names.ts';
import { type Clock, delay, type Logger, type Random } from '../core/runtime.ts';
import { BlobStore } from '../core/store/blobs.ts';
import type { StoreUsage } from '../core/store/store.ts';
import { type Caches, informerCaches } from './caches/caches.ts';
import { type ControllerConfig, installationOf, servedNamespaces } from './config.ts';
import { Leading } from './leadership.ts';
import { type LoadedKeys, loadMasterKeys } from './link/keys.ts';
import type { Inventory, Meter } from './meter.ts';
import { boundedApi } from './runtime/bounded-api.ts';
import { EventRecorder } from './runtime/event-recorder.ts';
import { learningApi } from './runtime/learning-api.ts';
import { LeaderElector, type Leadership } from './runtime/lease.ts';
import { leasedApi, WRITE_DEADLINE_MS } from './runtime/leased-api.ts';

export interface ControllerOptions {
  api: KubeApi;
  /** The same API for the lease alone. It has connections of its own, so that slow requests do not keep a leader from renewing. */
  leaseApi: KubeApi;
  config: ControllerConfig;
  /** The controller's own namespace. */
  namespace: string;
  /** Name of the lease's holder, for users; need not be unique. */
  holder: string;
  /** The API server's time where it is known; see `ServerClock`. */
  clock: Clock;
  /** Time by this machine's clock, milliseconds since the epoch. */
  ownTime(): number;
  random: Random;
  log: Logger;
  meter?: Meter;
  /** Attaches to the pods of one node that may be opened at once. Default: 16. */
  attachesPerNode?: number;
  /** Protocol version that the controller speaks. Default: that of this release. */
  protocol?: number;
}

/** Maximum time for running effects when the controller has to stop, so that it ends within its grace period. */
const STOP_MS = 4_000;
/** Maximum time then for releasing the lease; it expires otherwise. */
const RELEASE_MS = 2_000;
/** Time after which waiting sessions count as stuck: longer than any single call or stored result may take. */
const STALLED_MS = 5 * 60_000;

/** Attaches to the pods of one node that may be opened at once: see docs/decisions/attach.md. */
const ATTACHES_PER_NODE = 16;
/** Maximum concurrent calls of the store: half of the client's connections. */
const STORE_CALLS = 16;

/** Time without a renewal after which the leader gives up. */
const renewDeadlineMs = (leaseDurationMs: number) => Math.round((leaseDurationMs * 2) / 3);

/** Interval between attempts to get what a leader needs to begin. */
const RETRY_MS = 2_000;

/** Watches all the time, so that it can take over at once; acts while it holds the lease. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #caches: Caches;
  readonly #elector: LeaderElector;
  readonly #events: EventRecorder;
  readonly #stopped = new AbortController();
  /** Monotonic time at which this process began, at the latest. */
  readonly #beganAt: number;
  #leading: Leading | undefined;
  /**
   * True when no request of the last leadership can take effect later, nor one of the leader before it. A leader that
   * is stopped before it has waited for its predecessor's leaves its lease to expire: who finds it released waits for
   * nobody.
   */
  #finished = true;
  #changing: Promise<void> = Promise.resolve();
  #synced = false;
  #keyProblem: string | undefined;

  constructor(options: ControllerOptions) {
    const { api, config, clock, random, log, namespace, holder } = options;
    this.#options = options;
    this.#beganAt = clock.monotonic();
    this.#events = new EventRecorder({ api, clock, log, component: 'berth-controller' });
    this.#caches = informerCaches({
      api,
      clock,
      random,
      log,
      ...servedNamespaces(config),
      nodes: config.BERTH_WATCH_NODES && config.BERTH_NAMESPACES.length === 0,
      agentFiles: config.BERTH_AGENT_FILES,
      sessionPools: config.BERTH_SESSION_POOLS,
    });
    const leaseDurationMs = config.BERTH_LEASE_DURATION;
    this.#elector = new LeaderElector({
      api: options.leaseApi,
      clock,
      random,
      log,
      namespace,
      name: config.BERTH_LEASE_NAME,
      holder,
      place: config.BERTH_POD_UID,
      leaseDurationMs,
      renewDeadlineMs: renewDeadlineMs(leaseDurationMs),
      retryMs: Math.round(leaseDurationMs / 8),
      onStartedLeading: (leadership) => {
        this.#finished = leadership.found && !leadership.takenOver;
        this.#change(() => this.#start(leadership));
      },
      onStoppedLeading: (reason) => this.#change(() => this.#stop(reason)),
    });
  }

  /** Starts the caches and then leader election. */
  async start(): Promise<void> {
    this.#caches.start();
    try {
      await this.#caches.synced(this.#stopped.signal);
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      throw error;
    }
    this.#synced = true;
    this.#elector.start();
  }

  /** Problem that keeps the controller from being ready; undefined when there is none. */
  get problem(): string | undefined {
    return this.#synced ? this.#keyProblem : 'the caches have not been filled yet';
  }

  /** Namespaces that are left out, as they cannot be read. */
  get note(): string | undefined {
    const closed = this.#options.config.BERTH_NAMESPACES.flatMap((namespace) => {
      const why = this.#caches.closed(namespace);
      return why === undefined ? [] : [`namespace "${namespace}" cannot be read: ${why}`];
    });
    return closed.length > 0 ? closed.join('; ') : undefined;
  }

  /** Problem that only a restart of the process can solve; undefined when there is none. */
  get stalled(): string | undefined {
    const seconds = Math.round((this.#leading?.stalledMs ?? 0) / 1000);
    return seconds * 1000 > STALLED_MS ? `sessions have waited for ${seconds} s and none was reconciled` : undefined;
  }

  get isLeading(): boolean {
    return this.#leading !== undefined;
  }

  /** The leader's sessions, pods and slots; undefined where another leads. */
  get inventory(): Inventory | undefined {
    return this.#leading?.inventory;
  }

  /** Bytes that the store holds, its ceiling and its largest namespaces; undefined where another leads. */
  async storeUsage(signal: AbortSignal): Promise<StoreUsage | undefined> {
    return this.#leading?.storeUsage(signal);
  }

  /** Stops acting, releases the lease, stops watching. */
  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the controller is stopping'));
    await this.#change(() => this.#stop('the controller is stopping'));
    const { clock } = this.#options;
    await Promise.race([this.#elector.release(this.#finished), delay(clock, RELEASE_MS)]);
    await this.#events.stop(1000);
    await this.#caches.stop();
  }

  /** Runs changes of leadership one after the other. */
  #change(step: () => Promise<void>): Promise<void> {
    this.#changing = this.#changing.then(step).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'change of leadership failed');
    });
    return this.#changing;
  }

  async #start(leadership: Leadership): Promise<void> {
    const { api, config, clock, random, log, meter } = this.#options;
    const signal = anySignal(leadership.signal, this.#stopped.signal);
    if (signal.aborted) return;
    const leased = learningApi(
      leasedApi(api, () => this.#elector.deadlineLeftMs()),
      (resource, object) => this.#caches.saw(resource, object),
    );
    let keys: LoadedKeys;
    try {
      keys = await this.#prepare(leased, signal);
    } catch (error) {
      // The calls retry while this controller leads, so an error after its end is expected.
      if (signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    this.#leading = new Leading({
      api: leased,
      ...(meter ? { meter } : {}),
      caches: this.#caches,
      store: new BlobStore({
        onPut: ({ namespace, kind }, { name }, bytes) => this.#leading?.stored(`${namespace}/${name}`, kind, bytes),
        api: boundedApi(leased, STORE_CALLS),
        clock,
        ceilingBytes: config.BERTH_STORE_CEILING_BYTES,
        shareFactor: config.BERTH_STORE_SHARE_FACTOR,
        quotas: config.BERTH_STORE_QUOTAS,
        ...servedNamespaces(config),
      }),
      keys,
      clock,
      ownTime: this.#options.ownTime,
      random,
      log,
      config,
      attachesPerNode: this.#options.attachesPerNode ?? ATTACHES_PER_NODE,
      installation: installationOf(config, this.#options.protocol ?? PROTOCOL_VERSION),
      predecessorMs: this.#predecessorMs(leadership, keys),
      onReady: () => this.#elector.settle(leadership),
      signal: leadership.signal,
      epoch: () => this.#elector.epoch ?? 0,
      identity: this.#elector.identity,
      onLaterEpoch: (epoch) => {
        this.#elector
          .reacquireAbove(epoch)
          .catch((error: unknown) => log.warn({ err: error }, 'epoch could not be raised'));
      },
      notify: ({ metadata: { namespace, name, uid } }, { type, reason, message }, kind = 'Session') => {
        const subject = { apiVersion: API_GROUP_VERSION, kind, name, namespace, uid };
        this.#events.record(subject, type, reason, message);
      },
    });
    this.#leading.start();
    const { epoch, takenOver, found } = leadership;
    log.info({ epoch, takenOver, found, holder: this.#elector.identity }, 'leading');
  }

  /**
   * Milliseconds for which requests of the previous leader may still take effect. A write never takes longer than its
   * deadline, and ends with its sender's lease. If the lease was deleted, its holder may not notice until its next
   * renewal is due. An earlier process of the same container had ended before this one began.
   */
  #predecessorMs({ found, takenOver, succeedsItself }: Leadership, keys: LoadedKeys): number {
    const { BERTH_LEASE_DURATION: leaseMs } = this.#options.config;
    if (!found && !keys.created) return renewDeadlineMs(leaseMs);
    if (!takenOver) return 0;
    const writesMs = Math.min(WRITE_DEADLINE_MS, leaseMs);
    return succeedsItself ? Math.max(0, this.#beganAt + writesMs - this.#options.clock.monotonic()) : writesMs;
  }

  /** Gets what a leader needs before it acts: the master keys, its lease confirmed, and what was written before. */
  async #prepare(api: KubeApi, signal: AbortSignal): Promise<LoadedKeys> {
    const { config, namespace, random, log } = this.#options;
    const secret = { namespace, name: config.BERTH_MASTER_KEY_SECRET };
    const keys = await this.#retried(
      signal,
      () => loadMasterKeys(api, random, secret, signal),
      (error) => {
        this.#keyProblem = `the master keys cannot be read or created: ${error instanceof Error ? error.message : error}`;
        log.error({ err: error }, 'master keys could not be read or created');
      },
    );
    this.#keyProblem = undefined;
    // A leader whose lease was deleted before it had its keys must not begin to write: the controller that created the Secret
    // meanwhile took its absence to mean that none had led.
    if (!keys.created) {
      await this.#retried(
        signal,
        () => this.#elector.confirm(),
        (error) => log.warn({ err: error }, 'lease could not be confirmed'),
      );
    }
    await this.#retried(
      signal,
      () => this.#caches.refresh(signal),
      (error) => log.warn({ err: error }, 'sessions, turns and pods could not be read'),
    );
    return keys;
  }

  /** Repeats a call until it succeeds. Rejects only when the signal aborts: a controller leads although the call fails. */
  async #retried<R>(signal: AbortSignal, call: () => Promise<R>, onFailure: (error: unknown) => void): Promise<R> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        signal.throwIfAborted();
        onFailure(error);
        await delay(this.#options.clock, RETRY_MS, signal);
      }
    }
  }

  async #stop(reason: string): Promise<void> {
    const leading = this.#leading;
    this.#leading = undefined;
    if (!leading) return;
    this.#options.log.info({ reason }, 'no longer leading');
    this.#finished = await leading.stop(STOP_MS);
  }
}
