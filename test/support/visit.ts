import { type EnterFrame, type FrameKind, positionAt, positionBytes } from '../../core/enter/frames.ts';
import type { CommandExit, CommandReady, EnterRefusal, Hello, Wish } from '../../core/enter/hello.ts';
import { Commands } from '../../runner/commands/commands.ts';
import type { Visit } from '../../runner/enter/visit.ts';
import { eventually } from './eventually.ts';
import { seededRandom } from './random.ts';
import { VirtualClock } from './virtual-clock.ts';

/** A client's connection without a helper: the test plays the client. */
export class TestVisit implements Visit {
  readonly hello: Hello;
  /** Frames from the runner. */
  readonly frames: EnterFrame[] = [];
  refusal: EnterRefusal | undefined;
  isClosed = false;
  /** True: output is acknowledged as it comes. */
  acknowledges = true;
  /** True: each frame asks the runner to wait for `drain`. */
  isFull = false;
  /** Called with each frame from the runner. */
  onSent: (frame: EnterFrame) => void = () => {};
  readonly #gone = new AbortController();
  readonly #takers: ((frame: EnterFrame) => void)[] = [];
  readonly #drains: (() => void)[] = [];

  constructor(wish: Wish, to: { session: string; incarnation: number } = { session: 'session-1', incarnation: 1 }) {
    this.hello = { protocol: 1, ...to, ...wish };
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  send(kind: FrameKind, ...parts: readonly Buffer[]): boolean {
    if (this.gone.aborted) return true;
    const frame = { kind, payload: Buffer.concat(parts) };
    this.frames.push(frame);
    this.onSent(frame);
    if (kind === 'output' && this.acknowledges) {
      this.take('acknowledge', positionBytes(positionAt(frame.payload, 1) + frame.payload.length - 9));
    }
    return !this.isFull;
  }

  onFrame(fn: (frame: EnterFrame) => void): void {
    this.#takers.push(fn);
  }

  onDrain(fn: () => void): void {
    this.#drains.push(fn);
  }

  pause(): void {}
  resume(): void {}

  refuse(refusal: EnterRefusal): void {
    this.refusal = refusal;
    this.close();
  }

  close(): void {
    this.isClosed = true;
    this.#gone.abort();
  }

  /** Gives the runner a frame of the client. */
  take(kind: FrameKind, ...parts: readonly Buffer[]): void {
    if (this.gone.aborted) return;
    for (const fn of this.#takers) fn({ kind, payload: Buffer.concat(parts) });
  }

  drain(): void {
    for (const fn of this.#drains) fn();
  }

  input(position: number, bytes: string | Buffer): void {
    this.take('input', positionBytes(position), Buffer.from(bytes as string));
  }

  /** Ends the connection, as a client that goes away. */
  leave(): void {
    this.#gone.abort();
  }

  /** Bytes of a stream in the order in which they came. */
  output(stream: 1 | 2 = 1): Buffer {
    const outputs = this.frames.filter(({ kind, payload }) => kind === 'output' && payload[0] === stream);
    return Buffer.concat(outputs.map(({ payload }) => payload.subarray(9)));
  }

  json<T>(kind: FrameKind): T | undefined {
    const frame = this.frames.find((each) => each.kind === kind);
    return frame && (JSON.parse(frame.payload.toString()) as T);
  }

  ready(): Promise<CommandReady> {
    return eventually(() => this.#answer<CommandReady>('ready'), { what: 'ready', everyMs: 2 });
  }

  exit(): Promise<CommandExit> {
    return eventually(() => this.#answer<CommandExit>('exit'), { what: 'exit', everyMs: 2 });
  }

  refused(): Promise<EnterRefusal> {
    return eventually(() => this.refusal, { what: 'a refusal', everyMs: 2 });
  }

  #answer<T>(kind: FrameKind): T | undefined {
    if (this.refusal) throw new Error(`refused: ${this.refusal.code}: ${this.refusal.message}`);
    return this.json<T>(kind);
  }
}

/** Commands of a session whose pod starts none. */
export function noCommands(): Commands {
  const launch = () => Promise.reject(new Error('no command was expected'));
  return new Commands({ launch, directory: '/nowhere', clock: new VirtualClock(), random: seededRandom() });
}
