import type { Writable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';
import { Pressure } from './pressure.ts';

/** Bytes of text waiting for stderr above which the agent is paused. */
const PAUSE_BYTES = 1024 * 1024;
/** Bytes above which text is dropped, also while the agent's last output is read without a pause. */
const MAX_BYTES = 4 * PAUSE_BYTES;
const PIECE_BYTES = 16 * 1024;

/**
 * The runner's stderr. A reader of the pod's log that stops reading must not stop the session. The agent is slowed down
 * for a while; then text is dropped, and the number of dropped bytes is reported once the reader continues.
 */
export class TextSink {
  readonly pressure: Pressure;
  readonly #stream: Writable;
  /** Text that waits until the stream has written what it has. */
  readonly #waiting = new Pieces();
  #leftOut = 0;

  constructor(stream: Writable, clock: Clock) {
    this.#stream = stream;
    this.pressure = new Pressure(clock);
    // The log's reader is gone; the session continues without one.
    stream.on('error', () => this.pressure.stall());
  }

  write(text: string): void {
    if (this.pressure.stalled || this.#length > MAX_BYTES) {
      this.#leftOut += Buffer.byteLength(text);
      return;
    }
    // A stream keeps an object for each write that waits, which is many times as large as a text of one character.
    if (this.#stream.writableLength > 0) this.#waiting.push(text);
    else this.#give(text);
    if (this.#length > PAUSE_BYTES) this.pressure.hold();
  }

  get #length(): number {
    return this.#stream.writableLength + this.#waiting.bytes;
  }

  #give(text: string | Buffer): void {
    this.#stream.write(text, (error) => {
      if (!error) this.#taken();
    });
  }

  /** Goes on after a write that the reader has taken. */
  #taken(): void {
    if (this.#stream.writableLength > 0) return;
    if (this.#waiting.bytes > 0) for (const piece of this.#waiting.take()) this.#give(piece);
    else this.pressure.release(() => this.#note());
  }

  #note(): void {
    if (this.#leftOut) this.#give(`[berth: ${this.#leftOut} bytes are left out: nobody read this stream]\n`);
    this.#leftOut = 0;
  }
}

/** Text in pieces of a fixed size: any number of small texts takes little more memory than its bytes. */
class Pieces {
  #full: Buffer[] = [];
  #last: Buffer | undefined;
  #used = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  push(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#bytes += bytes;
    if (this.#used + bytes > PIECE_BYTES) this.#seal();
    if (bytes > PIECE_BYTES) {
      this.#full.push(Buffer.from(text));
      return;
    }
    this.#last ??= Buffer.allocUnsafe(PIECE_BYTES);
    this.#used += this.#last.write(text, this.#used);
  }

  /** Returns all pieces and keeps none. */
  take(): Buffer[] {
    this.#seal();
    const pieces = this.#full;
    this.#full = [];
    this.#bytes = 0;
    return pieces;
  }

  #seal(): void {
    if (this.#last && this.#used > 0) this.#full.push(this.#last.subarray(0, this.#used));
    this.#last = undefined;
    this.#used = 0;
  }
}
