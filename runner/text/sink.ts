import type { Writable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';

/** Text waiting for stderr beyond this asks the agent to pause. */
const PAUSE_BYTES = 1024 * 1024;
/** Beyond this text is left out even while the agent's last output is read without a pause. */
const MAX_BYTES = 4 * PAUSE_BYTES;
/** A reader that has taken nothing for so long stalls: the agent goes on and the text is left out. */
const STALL_MS = 5000;

/**
 * The runner's stderr. A reader of the pod's log that stops reading must not stop the session: the agent is slowed down
 * for a while, then text is left out, and how much is said once the reader is back.
 */
export class TextSink {
  readonly #stream: Writable;
  readonly #clock: Clock;
  #full = false;
  #stalled = false;
  #leftOut = 0;
  #cancelTimer: (() => void) | undefined;
  #onRoom: (() => void)[] = [];

  constructor(stream: Writable, clock: Clock) {
    this.#stream = stream;
    this.#clock = clock;
    // Its reader is gone: the log has no reader then, the session goes on.
    stream.on('error', () => this.#stall());
    stream.on('drain', () => this.#drained());
  }

  /** Whether the agent's output should not be read now. */
  get full(): boolean {
    return this.#full && !this.#stalled;
  }

  /** Calls back once `full` is over. */
  whenRoom(fn: () => void): void {
    this.#onRoom.push(fn);
  }

  write(text: string): void {
    if (this.#stalled || this.#stream.writableLength > MAX_BYTES) {
      this.#leftOut += Buffer.byteLength(text);
      return;
    }
    this.#stream.write(text);
    if (!this.#full && this.#stream.writableLength > PAUSE_BYTES) {
      this.#full = true;
      this.#cancelTimer = this.#clock.setTimer(STALL_MS, () => this.#stall());
    }
  }

  #stall(): void {
    this.#stalled = true;
    this.#wake();
  }

  #drained(): void {
    this.#cancelTimer?.();
    this.#full = false;
    this.#stalled = false;
    if (this.#leftOut) this.#stream.write(`[berth: ${this.#leftOut} bytes are left out: nobody read this stream]\n`);
    this.#leftOut = 0;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#onRoom;
    this.#onRoom = [];
    for (const fn of waiting) fn();
  }
}
