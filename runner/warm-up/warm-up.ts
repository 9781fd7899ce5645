import type { Clock } from '../../core/runtime.ts';

/**
 * Quiet after input that leaves the runner unbound, after which it warms up, milliseconds. A pod that is made for a session is
 * usually bound some milliseconds after its runner's first answer, and so pays for no warm-up.
 */
export const QUIET_MS = 250;
/** Limit of a warm-up, milliseconds. */
export const LIMIT_MS = 5000;

/**
 * Runs a session once while the runner waits for its own. Node loads and compiles most of its code at first use, and the
 * first turn after a warm-up need not wait for that.
 */
export class WarmUp {
  readonly #clock: Clock;
  readonly #perform: (signal: AbortSignal) => Promise<void>;
  readonly #ending = new AbortController();
  #over: Promise<void> | undefined;
  #cancelTimer = () => {};

  /** `perform` leaves nothing when it settles, soon after the signal has aborted. A rejection has no effect. */
  constructor(clock: Clock, perform: (signal: AbortSignal) => Promise<void>) {
    this.#clock = clock;
    this.#perform = perform;
  }

  /**
   * Notes that input has arrived, so the quiet begins anew. It does not begin before: a runner that nobody has attached yet may
   * be bound by the first who does.
   */
  heard(): void {
    if (this.#over || this.#ending.signal.aborted) return;
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.setTimer(QUIET_MS, () => this.#begin());
  }

  /** Ends the warm-up for good, or sees that there is none. Resolves when nothing of it is left. Never rejects. */
  end(): Promise<void> {
    this.#cancelTimer();
    this.#ending.abort();
    return this.#over ?? Promise.resolve();
  }

  #begin(): void {
    this.#cancelTimer = this.#clock.setTimer(LIMIT_MS, () => this.#ending.abort());
    this.#over = this.#perform(this.#ending.signal)
      .catch(() => {})
      .finally(() => this.#cancelTimer());
  }
}
