import type { Clock } from '../../core/runtime.ts';

/**
 * Time after which a slow reader counts as stalled and is not awaited any more. It is counted from when its stream was
 * full until the reader has taken everything, milliseconds.
 */
const STALL_MS = 5000;

/** Backpressure of one of the runner's streams: its writer waits for a slow reader, for a while. */
export class Pressure {
  readonly #clock: Clock;
  #held = false;
  #stalled = false;
  #cancelTimer = () => {};
  #onRoom: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if the agent's output should not be read now. */
  get full(): boolean {
    return this.#held && !this.#stalled;
  }

  /** True if the reader has been slow for too long, or is gone. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Calls back once `full` is false. */
  whenRoom(fn: () => void): void {
    this.#onRoom.push(fn);
  }

  /** Holds writers back, because the stream should take no more for now. */
  hold(): void {
    if (this.#held) return;
    this.#held = true;
    this.#cancelTimer = this.#clock.setTimer(STALL_MS, () => this.stall());
  }

  /**
   * Lets writers go on, because the reader has taken everything. `refill` writes the text that has waited here, which can
   * fill the stream again.
   */
  release(refill: () => void): void {
    this.#cancelTimer();
    this.#held = false;
    this.#stalled = false;
    refill();
    if (!this.#held) this.#wake();
  }

  /** Notes that nobody reads the stream. */
  stall(): void {
    this.#stalled = true;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#onRoom;
    this.#onRoom = [];
    for (const fn of waiting) fn();
  }
}
