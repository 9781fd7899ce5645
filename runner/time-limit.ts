import type { Clock } from '../core/runtime.ts';
import { longTimer } from './long-timer.ts';

/** How long a turn has run and may run; while it waits for a decision its time stands still. */
export class TimeLimit {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOver: () => void;
  #ranMs: number;
  #since: number | undefined;
  #cancel: () => void = () => {};

  /** `ranMs`: what it has run already. */
  constructor(clock: Clock, limitMs: number, ranMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#ranMs = ranMs;
    this.#onOver = onOver;
  }

  /** Milliseconds so far, begun ones too: what has run at all has run for longer than none. */
  get ranMs(): number {
    return Math.ceil(this.#ranMs + (this.#since === undefined ? 0 : this.#clock.monotonic() - this.#since));
  }

  /** Time runs. */
  start(): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.monotonic();
    this.#cancel = longTimer(this.#clock, this.#limitMs - this.#ranMs, this.#onOver);
  }

  /** Time stands still. */
  pause(): void {
    this.#ranMs = this.ranMs;
    this.#since = undefined;
    this.#cancel();
  }
}
