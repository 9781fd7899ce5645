import { anySignal } from '../../core/abort.ts';
import type { Backoff } from '../../core/kube/backoff.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Watches } from '../caches/watches.ts';
import type { Notify } from '../status/events.ts';
import { WorkQueue } from './work-queue.ts';

/** What the leader gives to each of its controllers. */
export interface ControllerTools {
  /** API client whose writes end with the lease. */
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  notify: Notify;
  /** Signal that aborts when the leadership ends. */
  signal: AbortSignal;
  /** Signal that aborts when the leader has to stop: nothing new is begun, and what is under way is finished. */
  closing: AbortSignal;
}

export interface QueueSettings {
  /** Names the controller's queue in logs. */
  name: string;
  /** Maximum concurrent reconciles. One key is never reconciled twice at a time. */
  workers: number;
  /** Delay after a reconcile that failed. */
  backoff: Backoff;
}

/** A part of the leader that reconciles objects, by key. What it watches adds keys to its queue. */
export abstract class QueueController {
  protected readonly queue: WorkQueue;
  readonly #random: Random;

  constructor(
    { clock, random, log, signal }: Pick<ControllerTools, 'clock' | 'random' | 'log' | 'signal'>,
    settings: QueueSettings,
  ) {
    this.#random = random;
    this.queue = new WorkQueue({
      ...settings,
      clock,
      random,
      log,
      process: (key, stopped) => this.reconcile(key, anySignal(signal, stopped)),
    });
  }

  abstract get watches(): Watches;

  /**
   * Reconciles what the key names. Resolves with the milliseconds until the next reconcile, where one is needed without an event.
   * A rejection is logged, and the key is tried again. The signal aborts when the leadership ends or the grace time of a stop is over.
   */
  protected abstract reconcile(key: string, signal: AbortSignal): Promise<number | undefined>;

  /** Begins to reconcile. */
  start(): void {
    this.queue.start();
  }

  /**
   * Begins no more reconciles. Resolves with whether those under way have finished within `graceMs`: a request that was cut off may
   * still take effect.
   */
  stop(graceMs: number): Promise<boolean> {
    return this.queue.stop(graceMs);
  }

  /** Reconciles an object as soon as a worker is free. */
  protected requeue(namespace: string, name: string): void {
    this.queue.add(`${namespace}/${name}`);
  }

  /** About `ms` milliseconds: many objects are not reconciled at the same moment. */
  protected jittered(ms: number): number {
    return ms * (0.75 + 0.5 * this.#random.uniform());
  }
}
