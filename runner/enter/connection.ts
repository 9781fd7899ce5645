import type { Socket } from 'node:net';
import {
  type EnterFrame,
  encodeFrame,
  encodeJson,
  FrameDecoder,
  type FrameKind,
  HEARTBEAT_MS,
  SILENCE_MS,
} from '../../core/enter/frames.ts';
import type { EnterRefusal, Hello } from '../../core/enter/hello.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Visit } from './visit.ts';

/** A helper's connection: a visit once its hello has come. */
export class Connection implements Visit {
  hello!: Hello;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #decoder = new FrameDecoder();
  readonly #gone = new AbortController();
  readonly #onFirst: (frame: EnterFrame) => void;
  #hasFirst = false;
  #onFrame: ((frame: EnterFrame) => void) | undefined;
  #onDrain: () => void = () => {};
  /** Frames that came before anybody asked for them. */
  #early: EnterFrame[] = [];
  #heardAt: number;
  #isPaused = false;
  #cancelBeat: () => void = () => {};

  /** `onFirst` is called with the first frame. */
  constructor(socket: Socket, clock: Clock, onFirst: (frame: EnterFrame) => void) {
    this.#socket = socket;
    this.#onFirst = onFirst;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#onDrain());
    socket.once('close', () => {
      this.#cancelBeat();
      this.#gone.abort();
    });
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Begins to show that the runner lives, and to end a connection whose client does not. */
  watch(): void {
    this.#cancelBeat = this.#clock.setTimer(HEARTBEAT_MS, () => {
      if (!this.#isPaused && this.#clock.monotonic() - this.#heardAt >= SILENCE_MS) {
        this.#socket.destroy();
        return;
      }
      // What waits to be sent is a sign of life by itself.
      if (!this.#socket.writableNeedDrain) this.send('beat');
      this.watch();
    });
  }

  send(kind: FrameKind, ...parts: readonly Buffer[]): boolean {
    return this.#write(encodeFrame(kind, ...parts));
  }

  onFrame(fn: (frame: EnterFrame) => void): void {
    this.#onFrame = fn;
    const early = this.#early;
    this.#early = [];
    for (const frame of early) fn(frame);
  }

  onDrain(fn: () => void): void {
    this.#onDrain = fn;
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#heardAt = this.#clock.monotonic();
    this.#socket.resume();
  }

  refuse(refusal: EnterRefusal): void {
    this.#write(encodeJson('refused', refusal));
    this.close();
  }

  close(): void {
    this.#cancelBeat();
    // Nobody takes what comes now.
    this.#onFrame ??= () => {};
    if (this.#socket.writable) this.#socket.end();
  }

  #write(bytes: Buffer): boolean {
    return this.#socket.writable ? this.#socket.write(bytes) : true;
  }

  #take(chunk: Buffer): void {
    this.#heardAt = this.#clock.monotonic();
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (!this.#hasFirst) {
          this.#hasFirst = true;
          this.#onFirst(frame);
        } else if (frame.kind === 'beat') continue;
        else if (this.#onFrame) this.#onFrame(frame);
        else this.#early.push(frame);
      }
    } catch {
      // Bytes that are no frame: nothing after them is understood.
      this.#socket.destroy();
    }
  }
}
