/** Numbers the runner's outgoing frames and holds those that may have to be sent again. */
import { FRAMES, type FrameKind } from './catalogue.ts';
import { type Channel, frameText } from './encode.ts';
import { type FrameMessages, MAX_MESSAGE_BYTES } from './messages.ts';
import { ReleasedRanges } from './released.ts';
import { FrameError, packMessage } from './wire.ts';

const RING_BYTES = 1024 * 1024;
/** Memory that a held frame takes besides its bytes. */
const FRAME_OVERHEAD = 128;
/** Room for two states of the largest size with their logs and results. */
const MAX_DURABLE_BYTES = 2 * MAX_MESSAGE_BYTES + 8 * 1024 * 1024;

export type SentKind = Exclude<FrameKind, 'ready' | 'dropped'>;

interface Held {
  kind: SentKind;
  packed: Buffer;
}

export interface SenderOptions extends Channel {
  /** Takes the text, like a writable stream's `write`. False: wait for `drained()` before the next call. */
  write: (text: string) => boolean;
  ringBytes?: number;
  maxDurableBytes?: number;
}

/**
 * Sends frames in the order of their numbers, one part at a time as `write` takes them. A slow reader costs no memory
 * beyond a cursor: a frame that leaves the ring before it is sent is reported as `dropped`, and a resend moves the
 * cursor back.
 */
export class FrameSender {
  readonly #options: SenderOptions;
  readonly #ringBytes: number;
  readonly #maxDurableBytes: number;
  /** Held durable frames by number, ascending. */
  readonly #durable = new Map<number, Held>();
  readonly #ring = new Map<number, Held>();
  readonly #released = new ReleasedRanges();
  #durableSize = 0;
  #ringSize = 0;
  #last = 0;
  /** Number of the frame that is written next. */
  #cursor = 1;
  /** Number that the cursor returns to after the current frame: a frame is never restarted half-way. */
  #rewind: number | undefined;
  #writing: Generator<string> | undefined;
  #waiting = false;
  #pumping = false;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#ringBytes = options.ringBytes ?? RING_BYTES;
    this.#maxDurableBytes = options.maxDurableBytes ?? MAX_DURABLE_BYTES;
  }

  /** Highest number assigned so far. */
  get lastSeq(): number {
    return this.#last;
  }

  /** Reports whether the durable frame of this number still waits for its acknowledgement. */
  holds(seq: number): boolean {
    return this.#durable.has(seq);
  }

  /**
   * Numbers the message and sends it. Throws a FrameError, and assigns no number, when the message is above
   * MAX_MESSAGE_BYTES or when more unacknowledged frames would be held than allowed.
   */
  send<K extends SentKind>(kind: K, message: FrameMessages[K], binary?: Buffer): number {
    const held = { kind, packed: packMessage(message, binary) };
    if (FRAMES[kind].kept) {
      const size = this.#durableSize + sizeOf(held);
      if (size > this.#maxDurableBytes) {
        const text = `${size} bytes would wait for acknowledgement; at most ${this.#maxDurableBytes} are held`;
        throw new FrameError('TooMuchHeld', text);
      }
      this.#last += 1;
      this.#durable.set(this.#last, held);
      this.#durableSize = size;
    } else {
      this.#last += 1;
      this.#ring.set(this.#last, held);
      this.#ringSize += sizeOf(held);
      for (const [seq, oldest] of this.#ring) {
        if (this.#ringSize <= this.#ringBytes) break;
        this.#releaseRing(seq, oldest);
      }
    }
    const seq = this.#last;
    this.#pump();
    return seq;
  }

  /** Releases every frame up to `through`: the controller has them. */
  ack(through: number): void {
    for (const [seq, held] of this.#durable) {
      if (seq > through) break;
      this.#durable.delete(seq);
      this.#durableSize -= sizeOf(held);
      this.#released.add(seq, held.kind);
    }
    for (const [seq, held] of this.#ring) {
      if (seq > through) break;
      this.#releaseRing(seq, held);
    }
  }

  /**
   * Sends everything from this number again: each frame that is still held, and `dropped` for each range that is not.
   */
  resend(from: number): void {
    this.#rewind = Math.max(1, Math.min(from, this.#rewind ?? from));
    this.#pump();
  }

  /** Goes on, because `write` takes text again. */
  drained(): void {
    this.#waiting = false;
    this.#pump();
  }

  #releaseRing(seq: number, held: Held): void {
    this.#ring.delete(seq);
    this.#ringSize -= sizeOf(held);
    this.#released.add(seq, held.kind);
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (!this.#waiting) {
        const text = this.#nextText();
        if (text === undefined) break;
        this.#waiting = !this.#options.write(text);
      }
    } finally {
      this.#pumping = false;
    }
  }

  #nextText(): string | undefined {
    for (;;) {
      this.#writing ??= this.#nextFrame();
      const text = this.#writing?.next();
      if (!text?.done) return text?.value;
      this.#writing = undefined;
    }
  }

  #nextFrame(): Generator<string> | undefined {
    if (this.#rewind !== undefined) {
      this.#cursor = Math.min(this.#cursor, this.#rewind);
      this.#rewind = undefined;
    }
    if (this.#cursor > this.#last) return undefined;
    const seq = this.#cursor;
    const held = this.#durable.get(seq) ?? this.#ring.get(seq);
    if (held) {
      this.#cursor = seq + 1;
      return frameText(this.#options, seq, held.kind, held.packed);
    }
    const dropped = this.#released.covering(seq);
    this.#cursor = dropped.to + 1;
    return frameText(this.#options, dropped.to, 'dropped', packMessage(dropped));
  }
}

function sizeOf(held: Held): number {
  return held.packed.length + FRAME_OVERHEAD;
}
