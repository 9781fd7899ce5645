import { WebSocket } from 'ws';
import type { Clock } from '../../core/runtime.ts';

/** Bytes of messages that wait for the handler above which the client is not read. */
const READ_BYTES = 256 * 1024;
/** Bytes on their way to the client above which the handler waits. */
const WRITE_BYTES = 256 * 1024;
/** Interval of pings, and time without an answer after which the client counts as gone; milliseconds. */
const PING_MS = 15_000;
const SILENCE_MS = 45_000;
/** Time that the client has to answer a close before the connection is cut, milliseconds. */
const CLOSE_MS = 2_000;
/** Limit of the reason of a close, bytes (RFC 6455). */
const REASON_BYTES = 123;

/** Codes of a close (RFC 6455 and IANA's registry). */
export const CLOSE = { normal: 1000, unsupported: 1003, refused: 1008, failed: 1011, restart: 1012 } as const;

/** A client's WebSocket. Both sides wait for each other: a client that is not read cannot send, and one that does not read is waited for. */
export class ClientSocket {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #messages: Buffer[] = [];
  #bytes = 0;
  /** True from the first close, of either side. */
  #isOver = false;
  /** True once the client sends nothing more. */
  #hasEnded = false;
  #heardAt: number;
  #wake: () => void = () => {};
  #cancelPing: () => void = () => {};
  #cancelClose: () => void = () => {};

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    socket.on('pong', () => {
      this.#heardAt = clock.monotonic();
    });
    // A close follows every error.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#cancelPing();
      this.#cancelClose();
      this.#end();
    });
    this.#armPing();
  }

  /** True once either side has closed. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Yields the client's messages, until it sends an empty text message, its last one, or either side closes. */
  async *messages(): AsyncGenerator<Buffer> {
    for (;;) {
      const message = this.#messages.shift();
      if (message) {
        this.#bytes -= message.length;
        if (this.#bytes <= READ_BYTES && this.#socket.isPaused) {
          this.#heardAt = this.#clock.monotonic();
          this.#socket.resume();
        }
        yield message;
      } else if (this.#isOver || this.#hasEnded) {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** Sends a message; resolves once there is room for the next. Rejects where the connection is over. */
  send(message: Buffer): Promise<void> {
    return this.#send(message);
  }

  /** Tells the client, as it tells us, that nothing more is sent. */
  sendEnd(): Promise<void> {
    return this.#send('');
  }

  #send(message: Buffer | ''): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isOver || this.#socket.readyState !== WebSocket.OPEN) {
        reject(new Error('the client has gone'));
        return;
      }
      this.#socket.send(message, (cause) => {
        if (cause) reject(new Error('the client has gone', { cause }));
        else resolve();
      });
      if (this.#socket.bufferedAmount <= WRITE_BYTES) resolve();
    });
  }

  /** Closes with a code and a reason, which is cut where it is too long. Messages that were not read are dropped. */
  close(code: number, reason = ''): void {
    if (this.#isOver) return;
    this.#messages.length = 0;
    this.#end();
    this.#cancelPing();
    this.#cancelClose = this.#clock.setTimer(CLOSE_MS, () => this.#socket.terminate());
    this.#socket.close(code, cut(reason));
    // The client's answer comes behind what was not read.
    this.#socket.resume();
  }

  #end(): void {
    this.#isOver = true;
    this.#wake();
  }

  #take(data: Buffer, isBinary: boolean): void {
    this.#heardAt = this.#clock.monotonic();
    if (this.#isOver) return;
    if (this.#hasEnded) {
      this.close(CLOSE.unsupported, 'send nothing after the empty text message');
    } else if (isBinary) {
      this.#messages.push(data);
      this.#bytes += data.length;
      if (this.#bytes > READ_BYTES) this.#socket.pause();
      this.#wake();
    } else if (data.length === 0) {
      this.#hasEnded = true;
      this.#wake();
    } else {
      this.close(CLOSE.unsupported, 'send binary messages');
    }
  }

  /** Pings the client: proxies drop silent connections, and a client that vanished is not noticed otherwise. */
  #armPing(): void {
    this.#cancelPing = this.#clock.setTimer(PING_MS, () => {
      // No answer is read while the client is not.
      if (!this.#socket.isPaused) {
        if (this.#clock.monotonic() - this.#heardAt >= SILENCE_MS) this.#socket.terminate();
        else this.#socket.ping();
      }
      this.#armPing();
    });
  }
}

function cut(reason: string): string {
  const bytes = Buffer.from(reason);
  return bytes.length <= REASON_BYTES
    ? reason
    : `${bytes
        .subarray(0, REASON_BYTES - 6)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')}…`;
}
