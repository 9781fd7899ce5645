import { hostname } from 'node:os';
import type { KubeClient } from '../core/kube/client.ts';
import { EventRecorder } from '../core/kube/events.ts';
import { LeaderElector, type Leadership } from '../core/kube/lease.ts';
import type { KubeApi } from '../core/kube/types.ts';
import { type Clock, delay, type Logger, type Random } from '../core/runtime.ts';
import { BlobStore } from '../core/store/blobs.ts';
import { type Caches, informerCaches } from './caches.ts';
import type { ControllerConfig } from './config.ts';
import { Leading } from './leadership.ts';
import { leasedApi, WRITE_DEADLINE_MS } from './leased-api.ts';
import { loadMasterKeys, type MasterKeys } from './link/keys.ts';

export interface ControllerOptions {
  api: KubeClient;
  config: ControllerConfig;
  /** The controller's own namespace. */
  namespace: string;
  clock: Clock;
  random: Random;
  log: Logger;
}

/** How long running effects may take when the controller is told to stop, so that it is out within its grace period. */
const STOP_MS = 5_000;

const KEYS_AGAIN_MS = 2_000;

/** Watches always, so that it can take over at once; acts while it holds the lease. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #caches: Caches;
  readonly #elector: LeaderElector;
  readonly #events: EventRecorder;
  readonly #stopped = new AbortController();
  #leading: Leading | undefined;
  #changing: Promise<void> = Promise.resolve();
  #synced = false;
  #keyProblem: string | undefined;

  constructor(options: ControllerOptions) {
    const { api, config, clock, random, log, namespace } = options;
    this.#options = options;
    this.#events = new EventRecorder({ api, clock, log, component: 'berth-controller' });
    this.#caches = informerCaches({
      api,
      clock,
      random,
      log,
      ...(config.BERTH_NAMESPACES.length > 0 ? { namespaces: config.BERTH_NAMESPACES } : {}),
      onSession: (key) => this.#leading?.sessionChanged(key),
      onPod: (pod, gone) => this.#leading?.podChanged(pod, gone),
      onClass: (name) => this.#leading?.classChanged(name),
    });
    const leaseDurationMs = config.BERTH_LEASE_DURATION;
    this.#elector = new LeaderElector({
      api,
      clock,
      random,
      log,
      namespace,
      name: config.BERTH_LEASE_NAME,
      holder: hostname(),
      leaseDurationMs,
      renewDeadlineMs: Math.round((leaseDurationMs * 2) / 3),
      retryMs: Math.round(leaseDurationMs / 8),
      onStartedLeading: (leadership) => this.#change(() => this.#start(leadership)),
      onStoppedLeading: (reason) => this.#change(() => this.#stop(reason)),
    });
  }

  /** Starts to watch and to stand for election. */
  async start(): Promise<void> {
    this.#caches.start();
    await this.#caches.synced(this.#stopped.signal);
    this.#synced = true;
    this.#elector.start();
  }

  /** What keeps the controller from being ready; undefined when nothing does. */
  get problem(): string | undefined {
    return this.#synced ? this.#keyProblem : 'the caches have not been filled yet';
  }

  get isLeading(): boolean {
    return this.#leading !== undefined;
  }

  /** Stops acting, gives the lease free, stops watching. */
  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the controller is stopping'));
    await this.#change(() => this.#stop('the controller is stopping'));
    await this.#elector.release();
    await this.#events.stop(1000);
    await this.#caches.stop();
  }

  /** Starts and stops come one after the other. */
  #change(step: () => Promise<void>): Promise<void> {
    this.#changing = this.#changing.then(step).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'change of leadership failed');
    });
    return this.#changing;
  }

  async #start(leadership: Leadership): Promise<void> {
    const { api, config, clock, random, log } = this.#options;
    if (leadership.signal.aborted || this.#stopped.signal.aborted) return;
    const leased = leasedApi(api, () => this.#elector.deadlineLeftMs());
    const keys = await this.#masterKeys(leased, leadership.signal);
    await this.#caches.refresh(leadership.signal);
    this.#leading = new Leading({
      api: leased,
      caches: this.#caches,
      store: new BlobStore({
        api: leased,
        clock,
        ceilingBytes: config.BERTH_STORE_CEILING_BYTES,
        ...(config.BERTH_NAMESPACES.length > 0 ? { namespaces: config.BERTH_NAMESPACES } : {}),
      }),
      keys,
      clock,
      random,
      log,
      installation: {
        runnerImage: config.BERTH_RUNNER_IMAGE,
        unresponsiveMs: config.BERTH_UNRESPONSIVE,
      },
      maxRunning: config.BERTH_MAX_RUNNING,
      workers: config.BERTH_WORKERS,
      // A write of the old leader ended with its lease at the latest, and was never under way for longer than this.
      admitAfterMs: leadership.takenOver ? Math.min(WRITE_DEADLINE_MS, config.BERTH_LEASE_DURATION) : 0,
      signal: leadership.signal,
      epoch: () => this.#elector.epoch ?? 0,
      onLaterEpoch: (epoch) => {
        this.#elector
          .reacquireAbove(epoch)
          .catch((error: unknown) => log.warn({ err: error }, 'epoch could not be raised'));
      },
      record: (...event) => this.#events.record(...event),
    });
    this.#leading.start();
    log.info({ epoch: leadership.epoch, takenOver: leadership.takenOver }, 'leading');
  }

  /** A leader without its keys can do nothing: it tries until it has them or leads no more, and says so. */
  async #masterKeys(api: KubeApi, signal: AbortSignal): Promise<MasterKeys> {
    const { config, namespace, clock, random, log } = this.#options;
    for (;;) {
      try {
        const keys = await loadMasterKeys(api, random, { namespace, name: config.BERTH_MASTER_KEY_SECRET }, signal);
        this.#keyProblem = undefined;
        return keys;
      } catch (error) {
        signal.throwIfAborted();
        this.#keyProblem = `the master keys cannot be had: ${error instanceof Error ? error.message : error}`;
        log.error({ err: error }, 'master keys cannot be had');
        await delay(clock, KEYS_AGAIN_MS, signal);
      }
    }
  }

  async #stop(reason: string): Promise<void> {
    const leading = this.#leading;
    this.#leading = undefined;
    if (!leading) return;
    this.#options.log.info({ reason }, 'no longer leading');
    await leading.stop(STOP_MS);
  }
}
