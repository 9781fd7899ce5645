import type { Clock } from '../../core/runtime.ts';
import { longTimer } from '../system/timers.ts';

/** Running time and time limit of a turn. Time spent waiting for a decision does not count. */
export class TimeLimit {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOver: () => void;
  #ranMs: number;
  #since: number | undefined;
  #cancel: () => void = () => {};

  /** `ranMs` is the running time so far. */
  constructor(clock: Clock, limitMs: number, ranMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#ranMs = ranMs;
    this.#onOver = onOver;
  }

  /** Running time so far, milliseconds, rounded up: a turn that ran at all has more than 0. */
  get ranMs(): number {
    return Math.ceil(this.#ranMs + (this.#since === undefined ? 0 : this.#clock.monotonic() - this.#since));
  }

  /** Starts the time. */
  start(): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.monotonic();
    this.#cancel = longTimer(this.#clock, this.#limitMs - this.#ranMs, this.#onOver);
  }

  /** Stops the time. */
  pause(): void {
    this.#ranMs = this.ranMs;
    this.#since = undefined;
    this.#cancel();
  }
}
