import { unlessAborted } from '../abort.ts';
import { type Clock, delay } from '../runtime.ts';

/** Time between the beginnings of two lists, milliseconds. */
const EVERY_MS = 1_000;

/**
 * Has watches begin anew with a list for those who know of a version that the watches have not reached. That happens at most
 * once a second for all of them together: anybody can send a place that no server has reached, and every list is one of a
 * whole namespace.
 */
export class CatchUp {
  readonly #clock: Clock;
  readonly #list: () => Promise<unknown>;
  readonly #stopped = new AbortController();
  /** The next list, until it begins. */
  #next: Promise<void> | undefined;
  #begunAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, list: () => Promise<unknown>) {
    this.#clock = clock;
    this.#list = list;
  }

  /** Resolves after a list that has begun since; rejects as it does, and with the signal's reason. */
  async again(signal: AbortSignal): Promise<void> {
    if (!this.#next) {
      this.#next = this.#run();
      // Those who wait may all have gone.
      this.#next.catch(() => {});
    }
    await unlessAborted(this.#next, signal);
  }

  stop(): void {
    this.#stopped.abort(new Error('nobody follows the namespace'));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const ms = this.#begunAt + EVERY_MS - this.#clock.monotonic();
    // Those who ask in the same moment share the list.
    await (ms > 0 ? delay(this.#clock, ms, signal) : undefined);
    this.#next = undefined;
    this.#begunAt = this.#clock.monotonic();
    await this.#list();
  }
}
