/** Connections to ports of a running session, many over one connection to it. */
import { Duplex } from 'node:stream';
import { TransportError } from '../kube/errors.ts';
import { EnterError, type FrameStream } from './client.ts';
import { type EnterFrame, MAX_PAYLOAD, MAX_PORT_CONNECTIONS, PORT_WINDOW } from './frames.ts';

/** Bytes of a frame before those of the connection. */
const ID = 4;
/** Bytes taken after which the helper gets credit for as many. */
const CREDIT_BYTES = PORT_WINDOW / 4;

/**
 * Connections to ports of one pod over one connection to it, which `frames` are: the answer to `want: 'ports'`. When that one is lost,
 * all its connections fail with its error.
 */
export class PortConnections {
  readonly #frames: FrameStream;
  readonly #session: string;
  readonly #open = new Map<number, PortConnection>();
  #lastId = 0;
  #over: { error: Error } | undefined;
  /** Resolves when no more connections can be opened; never rejects. */
  readonly ended: Promise<void>;

  /** `session`: the session's name, for messages. */
  constructor(frames: FrameStream, session: string) {
    this.#frames = frames;
    this.#session = session;
    this.ended = this.#read();
  }

  /** True if one more can be opened. */
  get hasRoom(): boolean {
    return this.#over === undefined && this.#open.size < MAX_PORT_CONNECTIONS;
  }

  /**
   * Opens a connection, which fails with an EnterError `PortRefused` where nothing listens and `PortFailed` where the server resets it,
   * and with a TransportError where the connection to the pod is lost. What is written before it is connected is sent then.
   */
  connect(port: number): PortConnection {
    this.#lastId += 1;
    const id = this.#lastId;
    const connection = new PortConnection({
      send: (kind, ...parts) => this.#frames.send(kind, number(id), ...parts),
      forget: () => this.#open.delete(id),
      failure: (text, isConnected) => {
        const where = `port ${port} of session ${this.#session}`;
        if (isConnected) return new EnterError({ code: 'PortFailed', message: `${where}: ${text}` });
        return new EnterError({ code: 'PortRefused', message: `${where} cannot be reached: ${text}` });
      },
    });
    if (this.#over) {
      connection.onLost(this.#over.error);
      return connection;
    }
    this.#open.set(id, connection);
    const bytes = Buffer.alloc(2);
    bytes.writeUInt16BE(port);
    this.#frames.send('connect', number(id), bytes).catch((error: Error) => connection.onLost(error));
    return connection;
  }

  /** Ends all connections, and the one to the pod. */
  close(): void {
    this.#frames.close();
  }

  async #read(): Promise<void> {
    let error: Error = new TransportError(`the connection to session ${this.#session} was closed`);
    try {
      for await (const frame of this.#frames) this.#take(frame);
    } catch (caught) {
      error = caught as Error;
    }
    this.#over = { error };
    for (const connection of this.#open.values()) connection.onLost(error);
    this.#open.clear();
  }

  #take({ kind, payload }: EnterFrame): void {
    if (payload.length < ID) return;
    // Frames of a connection that this side has reset are on their way for a while.
    const connection = this.#open.get(payload.readUInt32BE());
    const rest = payload.subarray(ID);
    if (kind === 'connected') connection?.onConnected();
    else if (kind === 'bytes') connection?.onBytes(rest);
    else if (kind === 'credit') connection?.onCredit(rest.readUInt32BE());
    else if (kind === 'halfClose') connection?.onBytes(null);
    else if (kind === 'closed') connection?.onClosed(rest.toString('utf8'));
  }
}

interface Way {
  send(kind: 'bytes' | 'halfClose' | 'closed' | 'credit', ...parts: Buffer[]): Promise<void>;
  forget(): void;
  /** Returns the error for what the helper says. */
  failure(text: string, isConnected: boolean): Error;
}

/**
 * A connection to a port. Each side ends its own half; destroying it before resets it. After both it closes as soon as the server has all
 * bytes. Who reads slowly holds the server of the port, and a server that reads slowly holds the writer.
 */
export class PortConnection extends Duplex {
  /** Resolves when the server has answered; rejects as the connection fails before. */
  readonly connected: Promise<void>;
  readonly #way: Way;
  readonly #received: (Buffer | null)[] = [];
  /** True while the reader has room. */
  #isWanted = false;
  #isConnected = false;
  /** True once the helper has no such connection any more. */
  #isClosed = false;
  #settle: (error?: Error) => void = () => {};
  /** Bytes that may be sent. */
  #credit = PORT_WINDOW;
  /** Bytes taken since credit was given. */
  #taken = 0;
  #wake: () => void = () => {};
  /** Ends a connection whose halves are both closed, once the server has all bytes. */
  #finish: ((error?: Error) => void) | undefined;

  constructor(way: Way) {
    super({ allowHalfOpen: true, emitClose: true });
    this.#way = way;
    this.connected = new Promise((resolve, reject) => {
      this.#settle = (error) => (error ? reject(error) : resolve());
    });
    // Who waits for it is told; nobody has to.
    this.connected.catch(() => {});
  }

  /** The server has answered. */
  onConnected(): void {
    this.#isConnected = true;
    this.#settle();
  }

  /** Takes bytes of the server, or its end. */
  onBytes(bytes: Buffer | null): void {
    this.#received.push(bytes);
    this.#pass();
  }

  /** The server took bytes. */
  onCredit(bytes: number): void {
    this.#credit += bytes;
    this.#wake();
  }

  /** The helper has ended the connection. */
  onClosed(why: string): void {
    this.#isClosed = true;
    this.#way.forget();
    const error = why === '' ? undefined : this.#way.failure(why, this.#isConnected);
    if (this.#finish) this.#finish(error);
    else if (error) this.destroy(error);
  }

  /** The connection to the pod is lost. */
  onLost(error: Error): void {
    this.#isClosed = true;
    if (this.#finish) this.#finish(error);
    else this.destroy(error);
  }

  override _read(): void {
    this.#isWanted = true;
    this.#pass();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(bytes).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#way.send('halfClose').then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#settle(error ?? new TransportError('the connection was closed'));
    this.#received.length = 0;
    this.#wake();
    if (!this.#isClosed && !error && this.readableEnded && this.writableFinished) {
      this.#finish = done;
      return;
    }
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#way.forget();
      this.#way.send('closed').catch(() => {});
    }
    done(error);
  }

  #pass(): void {
    while (this.#isWanted) {
      const bytes = this.#received.shift();
      if (bytes === undefined) return;
      if (bytes) this.#give(bytes.length);
      this.#isWanted = false;
      // A reader that has room asks for more at once, or later by `_read`.
      if (this.push(bytes)) this.#isWanted = true;
    }
  }

  async #send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      while (this.#credit === 0 && !this.destroyed) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      if (this.destroyed) return;
      const piece = bytes.subarray(at, at + Math.min(this.#credit, MAX_PAYLOAD - ID));
      this.#credit -= piece.length;
      at += piece.length;
      await this.#way.send('bytes', piece);
    }
  }

  #give(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < CREDIT_BYTES || this.#isClosed) return;
    const taken = number(this.#taken);
    this.#taken = 0;
    this.#way.send('credit', taken).catch(() => {});
  }
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
