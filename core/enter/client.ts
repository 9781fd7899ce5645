/** A client's connection to a running session, by way of the helper that the kubelet starts in its pod. */
import { StringDecoder } from 'node:string_decoder';
import { isPodGone, TransportError } from '../kube/errors.ts';
import type { KubeApi, PodStream, StreamEnd } from '../kube/types.ts';
import type { StoredSession } from '../resources/kinds.ts';
import { CONTAINER } from '../resources/names.ts';
import type { Clock } from '../runtime.ts';
import {
  ENTER_PROTOCOL,
  type EnterFrame,
  encodeFrame,
  encodeJson,
  FrameDecoder,
  type FrameKind,
  SILENCE_MS,
} from './frames.ts';
import { type EnterCode, type EnterRefusal, HELPER_PATH, type Hello, type Wish } from './hello.ts';
import { Liveness } from './liveness.ts';

/** Bytes of frames that wait for their reader above which nothing more is read by default, and at most which reading goes on. */
const HIGH_BYTES = 256 * 1024;
const LOW_BYTES = 64 * 1024;
/** Limit of what is kept of the helper's stderr, bytes. */
const SAID_BYTES = 2048;

/** The session, or the runner in its pod, does not do what was asked; asking again is useless until something changes. */
export class EnterError extends Error {
  readonly code: EnterCode;
  readonly field: string | undefined;

  constructor({ code, message, field }: EnterRefusal) {
    super(message);
    this.name = 'EnterError';
    this.code = code;
    this.field = field;
  }
}

/** What carries the frames of a connection. */
export type FrameCarrier = Pick<PodStream, 'write' | 'pause' | 'resume' | 'close' | 'closed'>;

/** Frames of one connection after the answer to its hello; heartbeats are left out. */
export interface FrameStream extends AsyncIterable<EnterFrame> {
  /** The answer to the hello. */
  readonly ready: unknown;
  /**
   * Sends a frame; resolves once there is room for the next. Rejects with a TransportError where the connection is over.
   */
  send(kind: FrameKind, ...parts: readonly Buffer[]): Promise<void>;
  /** Ends the connection; the iteration then ends without an error. */
  close(): void;
}

export interface EnterOptions {
  clock: Clock;
  /** Ends the opening, and later the connection. */
  signal: AbortSignal;
}

/** Returns the hello for what is wanted of the session's present pod. Throws an EnterError where it has none. */
export function helloFor(session: StoredSession, wish: Wish): Hello {
  const { metadata, spec, status } = session;
  if (spec.build) {
    throw refusal('Unsupported', `session ${metadata.name} builds an environment; nothing can be done inside it`);
  }
  const { phase = 'Queued', podName, incarnation } = status ?? {};
  if (podName === undefined || incarnation === undefined) throw withoutPod(metadata.name, phase);
  return { protocol: ENTER_PROTOCOL, session: metadata.uid, incarnation, ...wish };
}

function withoutPod(name: string, phase: string): EnterError {
  if (phase === 'Suspended') {
    return refusal('Suspended', `session ${name} is suspended and has no pod; give it a turn to wake it`);
  }
  if (phase === 'Finished' || phase === 'Terminating')
    return refusal('Stopping', `session ${name} has ended (${phase})`);
  return refusal('NotReady', `session ${name} has no pod yet: it is ${phase}`);
}

const refusal = (code: EnterCode, message: string) => new EnterError({ code, message });

/**
 * Opens a connection to the session's present pod and says what is wanted there. Resolves with the answer `ready`. Rejects
 * with an EnterError (a refusal), a TransportError (the connection failed, and what was wanted may have begun), an ApiError of the API
 * server, or the signal's reason.
 *
 * The iteration ends after a frame `end`, or after `exit` once the runner has heard that it came. A connection that ends before either was
 * lost, and the iteration ends with an error. A slow reader is waited for: at most some hundred KiB are read ahead.
 */
export async function enterSession(
  api: Pick<KubeApi, 'exec'>,
  session: StoredSession,
  wish: Wish,
  { clock, signal }: EnterOptions,
): Promise<FrameStream> {
  const hello = helloFor(session, wish);
  const { namespace, name } = session.metadata;
  const podName = session.status?.podName as string;
  const connection = new FrameConnection(name, clock, (end, said) => lossOf(name, end, { said, signal }));
  try {
    const stream = await api.exec(
      { namespace, name: podName },
      {
        container: CONTAINER,
        command: [HELPER_PATH],
        stdin: true,
        stdout: true,
        stderr: true,
        signal,
        onStdout: (chunk) => connection.take(chunk),
        onStderr: (chunk) => connection.hear(chunk),
      },
    );
    connection.opened(stream);
    await connection.write(encodeJson('hello', hello));
  } catch (error) {
    connection.close();
    if (isPodGone(error)) throw refusal('PodReplaced', `pod ${podName} of session ${name} is gone`);
    throw error;
  }
  await connection.answered();
  return connection;
}

/** A connection whose frames come over a carrier, which may be opened after it. */
export class FrameConnection implements FrameStream {
  ready: unknown;
  readonly #session: string;
  readonly #mostBytes: number;
  readonly #lossOf: (end: StreamEnd, said: string) => unknown;
  readonly #decoder = new FrameDecoder();
  readonly #frames: EnterFrame[] = [];
  #bytes = 0;
  #stream: FrameCarrier | undefined;
  /** Set once no more frames come: undefined in it for an orderly end. */
  #over: { error: unknown } | undefined;
  #wake: () => void = () => {};
  readonly #stderr = new StringDecoder('utf8');
  #said = '';
  /** True once the reader has the exit: however the connection ends then, nothing is missing. */
  #isExitRead = false;
  readonly #liveness: Liveness;
  /** Frames that are being sent, and the end of the last of them. */
  #sending = 0;
  #sent: Promise<void> = Promise.resolve();

  /**
   * `session`: its name, for messages. `lossOf` returns the error for the end of a carrier, from that and from what `hear` took.
   * `mostBytes`: those that wait for their reader above which nothing more is read.
   */
  constructor(
    session: string,
    clock: Clock,
    lossOf: (end: StreamEnd, said: string) => unknown,
    mostBytes: number = HIGH_BYTES,
  ) {
    this.#mostBytes = mostBytes;
    this.#session = session;
    this.#lossOf = lossOf;
    this.#liveness = new Liveness({
      clock,
      beat: () => {
        if (this.#sending === 0) this.send('beat').catch(() => {});
      },
      onSilence: () => {
        const message = `session ${session}: no sign of life for ${SILENCE_MS / 1000} s`;
        this.#end({ error: new TransportError(message) });
      },
    });
  }

  opened(stream: FrameCarrier): void {
    this.#stream = stream;
    stream.closed.then((end) => this.#end({ error: this.#lossOf(end, this.#said.trim()) }));
    if (this.#over) stream.close();
    else this.#liveness.start();
  }

  /** Notes a sign of life that is no frame. */
  heard(): void {
    this.#liveness.heard();
  }

  /** Takes bytes of frames. */
  take(chunk: Buffer): void {
    if (this.#over) return;
    this.#liveness.heard();
    try {
      for (const frame of this.#decoder.push(chunk)) this.#add(frame);
    } catch (error) {
      const text = chunk.subarray(0, 200).toString('utf8').trim();
      const message = `session ${this.#session}: what came from its pod is not understood: ${(error as Error).message}: ${text}`;
      this.#end({ error: new TransportError(message, { cause: error }) });
    }
  }

  /** Takes bytes of stderr, where a container runtime or a loader may say what went wrong. */
  hear(chunk: Buffer): void {
    if (this.#said.length < SAID_BYTES) this.#said += this.#stderr.write(chunk);
  }

  async send(kind: FrameKind, ...parts: readonly Buffer[]): Promise<void> {
    await this.write(encodeFrame(kind, ...parts));
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.#over || !this.#stream) {
      throw this.#over?.error ?? new TransportError(`the connection to session ${this.#session} is closed`);
    }
    const stream = this.#stream;
    // A stream takes the bytes of a call in pieces; those of another frame must not come between them.
    const sending = this.#sending === 0 ? stream.write(bytes) : this.#sent.then(() => stream.write(bytes));
    this.#sending += 1;
    this.#sent = sending.catch(() => {});
    try {
      await sending;
    } finally {
      this.#sending -= 1;
    }
  }

  close(): void {
    this.#end({ error: undefined });
  }

  /** Resolves when the hello was accepted; rejects as the opening does. */
  async answered(): Promise<void> {
    const { value, done } = await this.#next();
    if (done) throw new TransportError(`session ${this.#session}: the connection ended before the answer`);
    if (value.kind !== 'ready') {
      this.close();
      throw new TransportError(`session ${this.#session}: "${value.kind}" came in place of the answer`);
    }
    this.ready = JSON.parse(value.payload.toString('utf8'));
  }

  [Symbol.asyncIterator](): AsyncIterator<EnterFrame> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.close();
        return { value: undefined, done: true };
      },
    };
  }

  async #next(): Promise<IteratorResult<EnterFrame, undefined>> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame) {
        this.#isExitRead = frame.kind === 'exit';
        this.#bytes -= frame.payload.length;
        if (this.#liveness.isPaused && this.#bytes <= LOW_BYTES) this.#resume();
        return { value: frame, done: false };
      }
      if (this.#over) {
        if (!this.#isExitRead && this.#over.error !== undefined) throw this.#over.error;
        return { value: undefined, done: true };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #add(frame: EnterFrame): void {
    if (this.#over || frame.kind === 'beat') return;
    if (frame.kind === 'refused') {
      this.#end({ error: new EnterError(JSON.parse(frame.payload.toString('utf8')) as EnterRefusal) });
      return;
    }
    this.#frames.push(frame);
    this.#bytes += frame.payload.length;
    if (frame.kind === 'end') this.#end({ error: undefined });
    else if (this.#bytes > this.#mostBytes && !this.#liveness.isPaused) {
      this.#liveness.pause();
      this.#stream?.pause();
    }
    this.#wake();
  }

  #resume(): void {
    this.#liveness.resume();
    this.#stream?.resume();
  }

  /** Frames that came before the end are still given. */
  #end(over: { error: unknown }): void {
    if (this.#over) return;
    this.#over = over;
    this.#liveness.stop();
    this.#stream?.close();
    this.#wake();
  }
}

/** Returns the error for the end of an exec. `said`: what came of the helper's stderr. */
function lossOf(
  session: string,
  { by, message, exitCode }: StreamEnd,
  { said: stderr, signal }: { said: string; signal: AbortSignal },
): unknown {
  if (signal.aborted) return signal.reason;
  const said = [message, stderr].filter(Boolean).join('; ');
  if (/no such file or directory|executable file not found/.test(said)) {
    const why = 'its pod has no runner, or one that is older than this command';
    return refusal('Unsupported', `session ${session} cannot be entered: ${why} (${said})`);
  }
  if (by === 'remote' && /container not found|container .* is not running/.test(said)) {
    return refusal('NotReady', `the container of session ${session} does not run (${said})`);
  }
  const code = exitCode ? `the helper ended with ${exitCode}` : 'it ended early';
  return new TransportError(`the connection to session ${session} was lost: ${said || code}`);
}
