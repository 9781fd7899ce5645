import type { Clock, Logger, Random } from '../runtime.ts';
import { type Backoff, backoffMs } from './backoff.ts';

export interface WorkQueueOptions {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Names the queue in logs. */
  name: string;
  /** Keys processed at the same time; one key never is. */
  workers: number;
  /**
   * Looks at one key. Resolves with the milliseconds after which to look again, if at all. A rejection is logged, and
   * the key comes again with growing delay. The signal aborts when a stop has lost patience.
   */
  process: (key: string, signal: AbortSignal) => Promise<number | undefined>;
  /** Delay after a failure; default 50 ms doubling to 1 min. */
  backoff?: Backoff;
}

const BACKOFF = { baseMs: 50, maxMs: 60_000 };
/** Longer timers fire at once in Node. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

interface Delayed {
  due: number;
  cancel: () => void;
}

/**
 * Keys waiting to be looked at, never events: adding one twice is adding it once, and a key added while it is being
 * processed is processed again afterwards.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, { again: boolean }>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #abort = new AbortController();
  #started = false;
  #stopping = false;
  #drained: (() => void) | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Keys that could be processed now. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Keys with a later look planned. */
  get delayed(): number {
    return this.#delayed.size;
  }

  start(): void {
    this.#started = true;
    this.#pump();
  }

  add(key: string): void {
    if (this.#stopping) return;
    const running = this.#running.get(key);
    if (running !== undefined) running.again = true;
    else this.#waiting.add(key);
    this.#pump();
  }

  /** Adds the key in `ms` milliseconds. Of several pending calls for a key the earliest due one counts. */
  addAfter(key: string, ms: number): void {
    if (this.#stopping) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const due = this.#options.clock.monotonic() + ms;
    const pending = this.#delayed.get(key);
    if (pending !== undefined && pending.due <= due) return;
    pending?.cancel();
    this.#arm(key, due);
  }

  /** Adds the key after its backoff, one failure more than before. */
  retry(key: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.addAfter(key, backoffMs(failures, this.#options.backoff ?? BACKOFF, this.#options.random));
  }

  /** The key's object is gone or well again: drops its failures and its later looks. */
  forget(key: string): void {
    this.#failures.delete(key);
    this.#delayed.get(key)?.cancel();
    this.#delayed.delete(key);
  }

  /**
   * Starts nothing more and resolves when what is running has finished; after `graceMs` (default: never) the signal of
   * what still runs aborts.
   */
  async stop(graceMs?: number): Promise<void> {
    this.#stopping = true;
    this.#waiting.clear();
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    if (this.#running.size === 0) return;
    const reason = new Error(`the queue ${this.#options.name} was stopped`);
    const cancel =
      graceMs === undefined ? undefined : this.#options.clock.setTimer(graceMs, () => this.#abort.abort(reason));
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    cancel?.();
  }

  #arm(key: string, due: number): void {
    const left = due - this.#options.clock.monotonic();
    const cancel = this.#options.clock.setTimer(Math.min(left, LONGEST_TIMER_MS), () => {
      if (this.#options.clock.monotonic() < due) return this.#arm(key, due);
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { due, cancel });
  }

  #pump(): void {
    while (this.#started && !this.#stopping && this.#running.size < this.#options.workers) {
      const next = this.#waiting.values().next();
      if (next.done) return;
      this.#waiting.delete(next.value);
      this.#run(next.value);
    }
  }

  async #run(key: string): Promise<void> {
    const state = { again: false };
    this.#running.set(key, state);
    try {
      const againMs = await this.#options.process(key, this.#abort.signal);
      this.#failures.delete(key);
      if (typeof againMs === 'number') this.addAfter(key, againMs);
    } catch (error) {
      if (!this.#stopping) {
        const failures = (this.#failures.get(key) ?? 0) + 1;
        this.#options.log.warn(
          { queue: this.#options.name, key, failures, err: error },
          'key failed and is tried again',
        );
        this.retry(key);
      }
    } finally {
      this.#running.delete(key);
      if (state.again) this.add(key);
      if (this.#stopping && this.#running.size === 0) this.#drained?.();
      this.#pump();
    }
  }
}
