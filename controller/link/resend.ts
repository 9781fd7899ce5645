import type { Clock } from '../../core/runtime.ts';

export interface ResendOptions {
  clock: Clock;
  /** Sequence number of the first frame that has not come. */
  next(): number;
  /** Asks the runner for its frames from this sequence number on. */
  ask(from: number): void;
}

/** Time before a resend is requested again: frames already on their way when it was requested show the same gap. */
const AGAIN_MS = 1_000;

/** Asks for missing frames: once per gap, and again while they do not come. */
export class Resend {
  readonly #options: ResendOptions;
  /** Last frame known to be missing at the last request for a resend, and the time of that (monotonic milliseconds). */
  #asked = { through: 0, at: 0 };
  #cancel: () => void = () => {};

  constructor(options: ResendOptions) {
    this.#options = options;
  }

  /** Handles a gap: sequence numbers of its first and last frame. */
  missing({ from, to }: { from: number; to: number }): void {
    const { clock, next, ask } = this.#options;
    const now = clock.monotonic();
    const again = this.#asked.at + AGAIN_MS;
    this.#cancel();
    if (from > this.#asked.through || now >= again) {
      this.#asked = { through: to, at: now };
      ask(from);
      return;
    }
    // The missing frames come, or they were torn as well.
    this.#cancel = clock.setTimer(again - now, () => {
      if (next() <= to) this.missing({ from: next(), to });
    });
  }

  close(): void {
    this.#cancel();
  }
}
