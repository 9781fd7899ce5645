import type { Clock } from '../../core/runtime.ts';

/** A reader that is behind for so long, from when its stream was full until it has taken everything, stalls: nobody waits for it. */
const STALL_MS = 5000;

/** Whether the reader of one of the runner's streams is behind: who fills the stream waits for it, for a while. */
export class Pressure {
  readonly #clock: Clock;
  #held = false;
  #stalled = false;
  #cancelTimer = () => {};
  #onRoom: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the agent's output should not be read now. */
  get full(): boolean {
    return this.#held && !this.#stalled;
  }

  /** Whether the reader is behind for so long, or gone. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Calls back once `full` is over. */
  whenRoom(fn: () => void): void {
    this.#onRoom.push(fn);
  }

  /** The stream should take no more for now. */
  hold(): void {
    if (this.#held) return;
    this.#held = true;
    this.#cancelTimer = this.#clock.setTimer(STALL_MS, () => this.stall());
  }

  /** The reader has taken everything. `refill` gives the stream what has waited here, which can hold it again. */
  release(refill: () => void): void {
    this.#cancelTimer();
    this.#held = false;
    this.#stalled = false;
    refill();
    if (!this.#held) this.#wake();
  }

  /** Nobody reads the stream. */
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
