import { type Backoff, backoffMs } from '../../core/kube/backoff.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';

export interface WorkQueueOptions {
  clock: Clock;
  random: Random;
  log: Logger;
  /** Names the queue in logs. */
  name: string;
  /** Maximum concurrent keys, besides those that wait `withoutWorker`. One key is never processed twice at a time. */
  workers: number;
  /**
   * Processes one key. Resolves with the milliseconds until the next run of the key, or undefined for none. A rejection
   * is logged and the key is retried with growing delay. The signal aborts when the grace time of a stop is over.
   */
  process: (key: string, signal: AbortSignal) => Promise<number | undefined>;
  /** Delay after a failure. */
  backoff: Backoff;
}

/** Longer timers fire at once in Node. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

interface Delayed {
  due: number;
  cancel: () => void;
}

/** Number of immediate reruns of a key, after which it waits for this time. */
const MOST_IN_A_ROW = 50;
const BREATH_MS = 10;
/**
 * Number of keys after whose start timers, requests and answers get their turn. A process that awaits no request never
 * returns to the event loop, so thousands of keys in a row would hold them up for seconds.
 */
const BATCH = 50;
/** While other keys wait, one start in so many is that of a key added by `addLast`. */
const SHARE = 8;

/**
 * Work queue of keys, never events: adding a key twice is adding it once, and a key added while it is being processed
 * is processed again afterwards.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  /** Keys added by `addLast`, which wait behind the others. */
  readonly #last = new Set<string>();
  /** Number of consecutive immediate reruns of each key. */
  readonly #inARow = new Map<string, number>();
  readonly #running = new Map<string, { again: boolean }>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #abort = new AbortController();
  #started = false;
  #stopping = false;
  /** Number of running keys that do not count against the workers. */
  #withoutWorker = 0;
  /** Number of keys started since the event loop had its turn. */
  #inBatch = 0;
  /** Ends the pause between two batches; present during one. */
  #cancelPause: (() => void) | undefined;
  /** Number of keys started since the last one that was added by `addLast`. */
  #sinceLast = 0;
  /** Monotonic time at which a key was last started, or at which one was added to an empty queue. */
  #movedAt = 0;
  #drained: (() => void) | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Number of keys that could be processed now. */
  get waiting(): number {
    return this.#waiting.size + this.#last.size;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Number of keys with a planned run. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Milliseconds for which keys have waited while none was started; 0 when none waits. */
  get stalledMs(): number {
    if (!this.#started || this.#stopping || this.waiting === 0) return 0;
    return this.#options.clock.monotonic() - this.#movedAt;
  }

  start(): void {
    this.#started = true;
    this.#moved();
    this.#pump();
  }

  add(key: string): void {
    this.#add(key, this.#waiting);
  }

  /**
   * Adds the key behind all that are added otherwise, now or later. While others wait, it has its turn after some of
   * them all the same.
   */
  addLast(key: string): void {
    if (!this.#waiting.has(key) && !this.#last.has(key)) this.#add(key, this.#last);
  }

  /** Adds the key in `ms` milliseconds. The earliest of several pending calls for a key counts. */
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

  /** Adds the key after its backoff and counts one more failure. */
  retry(key: string): void {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.addAfter(key, backoffMs(failures, this.#options.backoff, this.#options.random));
  }

  /**
   * Runs slow work within the processing of a key. Another key gets the worker until then, so keys that wait do not delay
   * the others.
   */
  async withoutWorker<R>(work: () => Promise<R>): Promise<R> {
    this.#withoutWorker++;
    this.#pump();
    try {
      return await work();
    } finally {
      this.#withoutWorker--;
    }
  }

  /** Drops the failures and planned runs of a key whose object is gone or healthy again. */
  forget(key: string): void {
    this.#failures.delete(key);
    this.#delayed.get(key)?.cancel();
    this.#delayed.delete(key);
  }

  /**
   * Starts nothing more and resolves when the running keys have finished. After `graceMs` (default: never) the signal
   * of those still running aborts. Resolves with whether all have finished without that.
   */
  async stop(graceMs?: number): Promise<boolean> {
    this.#stopping = true;
    this.#cancelPause?.();
    this.#waiting.clear();
    this.#last.clear();
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    if (this.#running.size === 0) return !this.#abort.signal.aborted;
    const reason = new Error(`the queue ${this.#options.name} was stopped`);
    const cancel =
      graceMs === undefined ? undefined : this.#options.clock.setTimer(graceMs, () => this.#abort.abort(reason));
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    cancel?.();
    return !this.#abort.signal.aborted;
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

  #moved(): void {
    this.#movedAt = this.#options.clock.monotonic();
  }

  #add(key: string, keys: Set<string>): void {
    if (this.#stopping) return;
    const running = this.#running.get(key);
    if (running !== undefined) running.again = true;
    else {
      if (this.waiting === 0) this.#moved();
      this.#last.delete(key);
      keys.add(key);
    }
    this.#pump();
  }

  #pump(): void {
    while (this.#mayStart) {
      const next = this.#next();
      if (next === undefined) return;
      if (++this.#inBatch >= BATCH) this.#pause();
      this.#run(next);
    }
  }

  get #mayStart(): boolean {
    if (!this.#started || this.#stopping || this.#cancelPause) return false;
    return this.#running.size - this.#withoutWorker < this.#options.workers;
  }

  /** Takes the key that is next out of those that wait. */
  #next(): string | undefined {
    const isTurnOfLast = this.#waiting.size === 0 || this.#sinceLast >= SHARE - 1;
    const keys = isTurnOfLast && this.#last.size > 0 ? this.#last : this.#waiting;
    this.#sinceLast = keys === this.#last ? 0 : this.#sinceLast + 1;
    const [next] = keys;
    if (next !== undefined) keys.delete(next);
    return next;
  }

  /** Starts no key before the event loop had its turn. */
  #pause(): void {
    this.#inBatch = 0;
    this.#cancelPause = this.#options.clock.setTimer(0, () => {
      this.#cancelPause = undefined;
      this.#pump();
    });
  }

  /**
   * Limits immediate reruns: a key that its own process adds each time must not keep the rest of the program from
   * running.
   */
  #runAgain(key: string, again: boolean): void {
    const inARow = again ? (this.#inARow.get(key) ?? 0) + 1 : 0;
    if (again && inARow < MOST_IN_A_ROW) {
      this.#inARow.set(key, inARow);
      this.add(key);
      return;
    }
    this.#inARow.delete(key);
    if (again) this.addAfter(key, BREATH_MS);
  }

  async #run(key: string): Promise<void> {
    const state = { again: false };
    this.#running.set(key, state);
    this.#moved();
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
      this.#runAgain(key, state.again);
      if (this.#stopping && this.#running.size === 0) this.#drained?.();
      this.#pump();
    }
  }
}
