import { held, retryWaitMs } from '../kube/retry.ts';
import { type Clock, delay, type Random } from '../runtime.ts';

/** Time within which a lost connection is opened again, milliseconds. */
const RECONNECT_MS = 120_000;

/** Waits between the attempts to open a lost connection again. */
export class Reconnects {
  readonly #options: { clock: Clock; random: Random; signal: AbortSignal };
  #failures = 0;
  #lostAt: number | undefined;

  /** `signal` ends a wait. */
  constructor(options: { clock: Clock; random: Random; signal: AbortSignal }) {
    this.#options = options;
  }

  /** Notes that a connection was open: the time of the next loss begins anew. */
  opened(): void {
    this.#failures = 0;
    this.#lostAt = undefined;
  }

  /** Resolves when it is time for the next attempt. Rejects with the error of the last one once none has succeeded for two minutes. */
  async next(error: unknown): Promise<void> {
    const { clock, random, signal } = this.#options;
    this.#lostAt ??= clock.monotonic();
    if (clock.monotonic() - this.#lostAt >= RECONNECT_MS) throw error;
    const waitMs = retryWaitMs(error, this.#failures, random);
    this.#failures += 1;
    await held(delay(clock, waitMs, signal));
  }
}
