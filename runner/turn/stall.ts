import type { Clock } from '../../core/runtime.ts';
import { longTimer } from '../system/timers.ts';

export interface StallOptions {
  clock: Clock;
  /** Milliseconds of silence after which a turn counts as stalled; undefined: never. */
  stallMs: number | undefined;
  /** Returns the monotonic milliseconds of the last activity. */
  lastActivity: () => number;
  onStall: () => void;
}

/**
 * Detects a turn that hangs by its silence, while the turn is not waiting for people. A long turn with output is not
 * stopped.
 */
export class StallWatch {
  readonly #options: StallOptions;
  #since = 0;
  #watching = false;
  #cancel: () => void = () => {};

  constructor(options: StallOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#watching || this.#options.stallMs === undefined) return;
    this.#watching = true;
    this.#since = this.#options.clock.monotonic();
    this.#look(this.#options.stallMs);
  }

  pause(): void {
    this.#watching = false;
    this.#cancel();
  }

  #look(stallMs: number): void {
    const { clock, lastActivity, onStall } = this.#options;
    const left = Math.max(this.#since, lastActivity()) + stallMs - clock.monotonic();
    if (left <= 0) onStall();
    else this.#cancel = longTimer(clock, left, () => this.#look(stallMs));
  }
}
