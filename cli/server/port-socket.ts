import { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import type { Clock } from '../../core/runtime.ts';
import type { Ports } from '../cluster/backend.ts';
import type { ServerClient } from './client.ts';
import { ServerUnreachable } from './errors.ts';

/** Time without a sign of the server after which the connection is lost, milliseconds. It pings every 15 s. */
const SILENCE_MS = 60_000;
/** Code of an orderly close; the others have a reason that says what went wrong. */
const NORMAL = 1000;

/** Returns the ports of a session through a server: each connection is a WebSocket below `path`. */
export function serverPorts(
  client: ServerClient,
  path: string,
  { uid, clock, signal }: { uid: string; clock: Clock; signal: AbortSignal },
): Ports {
  const open = new Set<Duplex>();
  return {
    async connect(port) {
      const connection = new PortSocket(await client.socket(`${path}/${port}/tcp`, { query: { uid }, signal }), clock);
      open.add(connection);
      connection.once('close', () => open.delete(connection));
      return connection;
    },
    close: () => {
      for (const connection of open) connection.destroy();
    },
  };
}

/** The bytes of a WebSocket to a port. An empty text message says, both ways, that nothing more is sent. */
class PortSocket extends Duplex {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  #heardAt: number;
  #cancelSilence: () => void = () => {};
  /** Ends a connection whose halves are both closed, once the server of the port has all bytes. */
  #finish: ((error?: Error) => void) | undefined;

  constructor(socket: WebSocket, clock: Clock) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    const hear = () => {
      this.#heardAt = clock.monotonic();
    };
    socket.on('ping', hear);
    socket.on('message', (data: Buffer, isBinary) => {
      hear();
      if (!isBinary) this.push(null);
      else if (!this.push(data)) socket.pause();
    });
    socket.on('error', (error) => this.#end(new ServerUnreachable(error.message, { cause: error })));
    socket.on('close', (code, reason) => {
      const isDone = code === NORMAL && this.#finish !== undefined;
      const why = String(reason) || `it was closed with ${code}`;
      this.#end(isDone ? undefined : new ServerUnreachable(why));
    });
    this.#armSilence();
  }

  override _read(): void {
    if (!this.#socket.isPaused || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#heardAt = this.#clock.monotonic();
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.send(bytes, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.send('', done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const isOpen = this.#socket.readyState === WebSocket.OPEN;
    if (!error && isOpen && this.readableEnded && this.writableFinished) {
      this.#finish = done;
      // The close comes behind everything else.
      this.#socket.resume();
      return;
    }
    this.#cancelSilence();
    this.#socket.terminate();
    done(error);
  }

  #end(error?: Error): void {
    this.#cancelSilence();
    if (!this.#finish) return void this.destroy(error);
    this.#socket.terminate();
    this.#finish(error);
  }

  #armSilence(): void {
    this.#cancelSilence = this.#clock.setTimer(SILENCE_MS / 4, () => {
      // Nothing is heard while nothing is read.
      if (!this.#socket.isPaused && this.#clock.monotonic() - this.#heardAt >= SILENCE_MS) {
        this.#end(new ServerUnreachable(`no sign of life for ${SILENCE_MS / 1000} s`));
      } else this.#armSilence();
    });
  }
}
