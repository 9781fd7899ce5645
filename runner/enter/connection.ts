import type { Socket } from 'node:net';
import { type EnterFrame, encodeJson, FrameDecoder, type FrameKind, frameParts } from '../../core/enter/frames.ts';
import type { EnterRefusal, Hello } from '../../core/enter/hello.ts';
import { Liveness } from '../../core/enter/liveness.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Visit } from './visit.ts';

/** A helper's connection: a visit once its hello has come. */
export class Connection implements Visit {
  hello!: Hello;
  readonly #socket: Socket;
  readonly #decoder = new FrameDecoder();
  readonly #gone = new AbortController();
  readonly #onFirst: (frame: EnterFrame) => void;
  #hasFirst = false;
  #onFrame: ((frame: EnterFrame) => void) | undefined;
  #onDrain: () => void = () => {};
  /** Frames that came before anybody asked for them. */
  #early: EnterFrame[] = [];
  readonly #liveness: Liveness;

  /** `onFirst` is called with the first frame. */
  constructor(socket: Socket, clock: Clock, onFirst: (frame: EnterFrame) => void) {
    this.#socket = socket;
    this.#onFirst = onFirst;
    this.#liveness = new Liveness({
      clock,
      beat: () => {
        if (!socket.writableNeedDrain) this.send('beat');
      },
      onSilence: () => socket.destroy(),
    });
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#onDrain());
    socket.once('close', () => {
      this.#liveness.stop();
      this.#gone.abort();
    });
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Begins to show that the runner lives, and to end a connection whose client does not. */
  watch(): void {
    this.#liveness.start();
  }

  send(kind: FrameKind, ...parts: readonly Buffer[]): boolean {
    return this.#write(...frameParts(kind, ...parts));
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
    this.#liveness.pause();
    this.#socket.pause();
  }

  resume(): void {
    this.#liveness.resume();
    this.#socket.resume();
  }

  refuse(refusal: EnterRefusal): void {
    this.#write(encodeJson('refused', refusal));
    this.close();
  }

  close(): void {
    this.#liveness.stop();
    // Nobody takes what comes now.
    this.#onFrame ??= () => {};
    if (this.#socket.writable) this.#socket.end();
  }

  /** Writes what is sent in one go by one call of the system. */
  #write(...pieces: readonly Buffer[]): boolean {
    const socket = this.#socket;
    if (!socket.writable) return true;
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return pieces.map((piece) => socket.write(piece)).at(-1) ?? true;
  }

  #take(chunk: Buffer): void {
    this.#liveness.heard();
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
