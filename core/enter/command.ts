import { onAbort, unlessAborted } from '../abort.ts';
import { TransportError } from '../kube/errors.ts';
import { mayPass } from '../kube/retry.ts';
import { type Clock, pause, type Random } from '../runtime.ts';
import { EnterError, type FrameStream } from './client.ts';
import { CommandInput } from './command-input.ts';
import { type EnterFrame, positionAt, positionBytes } from './frames.ts';
import type { CommandExit, CommandReady, CommandStart, CommandWish, EnterCode, TerminalSize } from './hello.ts';
import { Reconnects } from './reconnects.ts';

/** Time within which the runner hears that the exit has come; otherwise it keeps the command for a while. */
const HEARD_MS = 1000;
/** Bytes of output after which the client tells how far it is. */
const ACKNOWLEDGE_BYTES = 262_144;

export interface RemoteCommandOptions {
  /** Opens a connection to the same pod each time: an id means nothing in another one. */
  open: (wish: CommandWish, signal: AbortSignal) => Promise<FrameStream>;
  id: string;
  /** Absent: the command was started before, and is attached to. */
  start?: CommandStart;
  /** Given: this client has the command's input. */
  input?: AsyncIterable<Buffer>;
  /** Takes output; more comes once it has resolved. */
  onOutput: (stream: 1 | 2, bytes: Buffer) => void | Promise<void>;
  /** Hears that output is kept no more: positions from, to (exclusive). */
  onLost: (from: number, to: number) => void;
  /** Called once the command is known to run. */
  onReady?: (ready: CommandReady) => void;
  /** Rejects when the session is deleted, replaced or suspended: a connection into a pod that is gone may tell nothing. */
  watch?: (signal: AbortSignal) => Promise<never>;
  clock: Clock;
  random: Random;
  /** Ends the wait; the command goes on. */
  signal: AbortSignal;
}

/**
 * A command in a session, over connections that may be lost: each byte of its output comes once and in order, each byte of input is
 * taken once, and it is never started twice.
 */
export class RemoteCommand {
  readonly #options: RemoteCommandOptions;
  readonly #input: CommandInput | undefined;
  /** Aborts when the wait is over, for whatever reason. */
  readonly #over = new AbortController();
  /** Position of the next byte of output. */
  #position = 0;
  #acknowledged = 0;
  /** True once the command is known to have been started. */
  #hasBegun = false;
  /** True once a start was sent whose answer did not come. */
  #mayHaveBegun = false;
  #stream: FrameStream | undefined;
  /** Signals that wait for a connection. */
  readonly #signals: string[] = [];
  #size: TerminalSize | undefined;

  constructor(options: RemoteCommandOptions) {
    this.#options = options;
    this.#input = options.input ? new CommandInput() : undefined;
  }

  /**
   * Resolves with the exit. Rejects with an EnterError: `CommandLost` where the command is gone with its pod, a refusal otherwise;
   * with a TransportError where no connection could be opened again; or with the reason of the signal or the watch.
   */
  async run(): Promise<CommandExit> {
    const { signal, input, watch } = this.#options;
    const over = this.#over;
    const remove = onAbort(signal, () => over.abort(signal.reason));
    watch?.(over.signal).catch((error) => over.abort(error));
    if (input) this.#input?.read(input, over.signal).catch((error) => over.abort(error));
    try {
      return await unlessAborted(this.#connectAgain(), over.signal);
    } finally {
      remove();
      over.abort(new Error('the command is over'));
      this.#stream?.close();
      this.#input?.wake();
    }
  }

  /** Sends a signal to the command, as soon as there is a connection. */
  signal(name: NodeJS.Signals): void {
    this.#signals.push(name);
    this.#sendSignals();
  }

  /** Tells the size of the terminal. */
  resize(size: TerminalSize): void {
    this.#size = size;
    this.#sendSize();
  }

  async #connectAgain(): Promise<CommandExit> {
    const { open, clock, random } = this.#options;
    const { signal } = this.#over;
    const reconnects = new Reconnects({ clock, random, signal });
    for (;;) {
      try {
        const stream = await open(this.#wish(), signal);
        reconnects.opened();
        return await this.#attend(stream);
      } catch (error) {
        signal.throwIfAborted();
        if (!this.#mayTryAgain(error)) throw this.#whyLost(error);
        if (error instanceof TransportError && error.sent) this.#mayHaveBegun = true;
        await reconnects.next(error);
      }
    }
  }

  #wish(): CommandWish {
    const { id, start } = this.#options;
    return {
      want: 'command',
      id,
      // One that was started is not started again, whatever became of it.
      ...(start && !this.#hasBegun && { start }),
      from: this.#position,
      ...(this.#input && { input: true }),
    };
  }

  /** Reads a connection up to the exit. Rejects where it ends before. */
  async #attend(stream: FrameStream): Promise<CommandExit> {
    const ready = stream.ready as CommandReady;
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    this.#stream = stream;
    this.#acknowledged = this.#position;
    if (isFirst) this.#options.onReady?.(ready);
    this.#sendSignals();
    this.#sendSize();
    const done = new AbortController();
    // A connection that fails ends the iteration below, which says why.
    this.#input?.send(stream, ready.input, done.signal).catch(() => {});
    try {
      const frames = stream[Symbol.asyncIterator]();
      for (let next = await frames.next(); !next.done; next = await frames.next()) {
        if (next.value.kind === 'exit') {
          await this.#sayKnown(stream, frames);
          return JSON.parse(next.value.payload.toString('utf8')) as CommandExit;
        }
        await this.#take(stream, next.value);
      }
      throw new TransportError('the connection ended before the command’s exit');
    } finally {
      this.#stream = undefined;
      done.abort();
      this.#input?.wake();
      stream.close();
    }
  }

  /** Says that the exit has come, and waits a moment until the runner has heard it and ends the connection. */
  async #sayKnown(stream: FrameStream, frames: AsyncIterator<EnterFrame>): Promise<void> {
    const over = new AbortController();
    const heard = stream.send('exit').then(() => frames.next());
    await Promise.race([heard, pause(this.#options.clock, HEARD_MS, over.signal)]).catch(() => {});
    over.abort();
  }

  async #take(stream: FrameStream, { kind, payload }: EnterFrame): Promise<void> {
    if (kind === 'taken') this.#input?.taken(positionAt(payload));
    else if (kind === 'lost') {
      const to = positionAt(payload, 8);
      if (to > this.#position) this.#options.onLost(this.#position, to);
      this.#position = Math.max(this.#position, to);
    } else if (kind === 'output') {
      const bytes = payload.subarray(9);
      const fresh = bytes.subarray(Math.max(0, this.#position - positionAt(payload, 1)));
      // What was given out is not asked for again, even if giving it out fails half-way.
      this.#position += fresh.length;
      if (fresh.length > 0) await this.#options.onOutput(payload[0] as 1 | 2, fresh);
    }
    if (this.#position - this.#acknowledged < ACKNOWLEDGE_BYTES) return;
    this.#acknowledged = this.#position;
    stream.send('acknowledge', positionBytes(this.#position)).catch(() => {});
  }

  #sendSignals(): void {
    const stream = this.#stream;
    if (!stream) return;
    for (const name of this.#signals.splice(0)) {
      stream.send('signal', Buffer.from(name)).catch(() => this.#signals.push(name));
    }
  }

  #sendSize(): void {
    if (!this.#size) return;
    const bytes = Buffer.alloc(4);
    bytes.writeUInt16BE(this.#size.rows);
    bytes.writeUInt16BE(this.#size.columns, 2);
    this.#stream?.send('resize', bytes).catch(() => {});
  }

  #mayTryAgain(error: unknown): boolean {
    if (error instanceof EnterError) {
      // A suspension may be undone; what becomes of it, the watch tells.
      return this.#hasBegun && (error.code === 'Suspended' || error.code === 'NotReady');
    }
    return mayPass(error, this.#hasBegun || this.#mayHaveBegun);
  }

  #whyLost(error: unknown): unknown {
    const isGone = error instanceof EnterError && GONE.includes(error.code);
    if (!isGone || !(this.#hasBegun || this.#mayHaveBegun)) return error;
    const { id } = this.#options;
    const what = this.#hasBegun ? `command ${id} is lost` : `whether command ${id} was started is not known`;
    return new EnterError({ code: 'CommandLost', message: `${what}: ${error.message}` });
  }
}

/** Refusals that say that the command is not there any more. */
const GONE: readonly EnterCode[] = ['PodReplaced', 'CommandNotFound', 'CommandLost', 'Stopping'];
