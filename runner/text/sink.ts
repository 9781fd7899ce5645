import type { Writable } from 'node:stream';
import type { Clock } from '../../core/runtime.ts';
import { Pressure } from './pressure.ts';

/** Bytes of text waiting for stderr above which the agent is paused. */
const PAUSE_BYTES = 1024 * 1024;
/** Bytes above which text is dropped, also while the agent's last output is read without a pause. */
const MAX_BYTES = 4 * PAUSE_BYTES;

/**
 * The runner's stderr. A reader of the pod's log that stops reading must not stop the session. The agent is slowed down
 * for a while; then text is dropped, and the number of dropped bytes is reported once the reader continues.
 */
export class TextSink {
  readonly pressure: Pressure;
  readonly #stream: Writable;
  #leftOut = 0;

  constructor(stream: Writable, clock: Clock) {
    this.#stream = stream;
    this.pressure = new Pressure(clock);
    // The log's reader is gone; the session continues without one.
    stream.on('error', () => this.pressure.stall());
    stream.on('drain', () => this.pressure.release(() => this.#note()));
  }

  write(text: string): void {
    if (this.pressure.stalled || this.#stream.writableLength > MAX_BYTES) {
      this.#leftOut += Buffer.byteLength(text);
      return;
    }
    this.#stream.write(text);
    if (this.#stream.writableLength > PAUSE_BYTES) this.pressure.hold();
  }

  #note(): void {
    if (this.#leftOut) this.#stream.write(`[berth: ${this.#leftOut} bytes are left out: nobody read this stream]\n`);
    this.#leftOut = 0;
  }
}
