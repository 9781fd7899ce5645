/**
 * Server side of attach and exec over WebSocket, protocols v5.channel.k8s.io and v4.channel.k8s.io: every message
 * begins with the number of its channel.
 */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import type { TerminalSize } from '../../core/enter/hello.ts';
import type { StreamName } from './log-file.ts';
import type { OutputSink } from './output.ts';

const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];

/** Limit of the output that waits for a reader, above which the stream blocks; bytes. */
const MAX_BUFFERED = 256 * 1024;

export interface Upgrade {
  req: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

/** The Status that ends a stream. */
export type StreamStatus =
  | { status: 'Success' }
  | {
      status: 'Failure';
      message: string;
      reason: string;
      code?: number;
      details?: { causes: { reason: string; message: string }[] };
    };

/** Returns the Status of a command's end, worded like the real API server's. */
export function exitStatus(exitCode: number): StreamStatus {
  if (exitCode === 0) return { status: 'Success' };
  return {
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exitCode) }] },
  };
}

export function internalError(message: string): StreamStatus {
  return { status: 'Failure', message: `Internal error occurred: ${message}`, reason: 'InternalError', code: 500 };
}

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  handleProtocols: (offered) => PROTOCOLS.find((protocol) => offered.has(protocol)) ?? false,
});

/** Reports whether the client offers a supported protocol. */
export function speaksProtocol(req: IncomingMessage): boolean {
  const offered = (req.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
  return PROTOCOLS.some((protocol) => offered.includes(protocol));
}

/** Target of a stream's stdin. */
export interface StdinTarget {
  /** Returns false if the next write must wait for `onDrain`. */
  write(data: Buffer): boolean;
  /** Returns a function that removes the listener. */
  onDrain(listener: () => void): () => void;
  /** Handler of a stdin that the client has half-closed. */
  close(): void;
}

/** An accepted connection. */
export class ChannelStream implements OutputSink {
  readonly wants: ReadonlySet<StreamName>;
  /** Settles when the connection is gone, whichever side ended it. */
  readonly closed: Promise<void>;
  /** True if the client wants to send stdin. */
  readonly stdin: boolean;
  /** True if the command is to run on a terminal. */
  readonly tty: boolean;
  readonly #socket: WebSocket;
  #waiting: (() => void)[] = [];

  /** Answers the upgrade; `query` names the requested streams. */
  static accept({ req, socket, head }: Upgrade, query: URLSearchParams, opened: (stream: ChannelStream) => void): void {
    server.handleUpgrade(req, socket, head, (webSocket) => opened(new ChannelStream(webSocket, query)));
  }

  private constructor(socket: WebSocket, query: URLSearchParams) {
    this.#socket = socket;
    const wanted = (['stdout', 'stderr'] as const).filter((name) => isTrue(query.get(name)));
    this.wants = new Set(wanted);
    socket.on('error', () => {});
    this.closed = new Promise((resolve) =>
      socket.once('close', () => {
        this.#room();
        resolve();
      }),
    );
    this.stdin = isTrue(query.get('stdin'));
    this.tty = isTrue(query.get('tty'));
    if (this.stdin || this.tty) socket.pause();
    // The empty message shows the client that the streams exist, as that of the real API server does.
    this.#send(CHANNEL[wanted[0] ?? 'error'], Buffer.alloc(0));
  }

  get full(): boolean {
    return this.#socket.readyState === WebSocket.OPEN && this.#socket.bufferedAmount > MAX_BUFFERED;
  }

  onRoom(listener: () => void): void {
    this.#waiting.push(listener);
  }

  write(stream: StreamName, chunk: Buffer): void {
    this.#send(CHANNEL[stream], chunk);
  }

  /** Passes stdin on, no faster than the target takes it. Stdin is not read from the connection before this call. */
  readStdin(target: StdinTarget): void {
    const off = target.onDrain(() => this.#socket.resume());
    this.closed.then(off);
    this.#socket.resume();
    this.#socket.on('message', (data: RawData) => {
      const message = data as Buffer;
      if (message[0] === CHANNEL.stdin && message.length > 1) {
        if (!target.write(message.subarray(1))) this.#socket.pause();
      } else if (message[0] === CHANNEL.close && message[1] === CHANNEL.stdin) target.close();
    });
  }

  /** Passes on the sizes of the client's terminal. They are not read from the connection before this call. */
  readSizes(listener: (size: TerminalSize) => void): void {
    this.#socket.on('message', (data: RawData) => {
      const message = data as Buffer;
      const size = message[0] === CHANNEL.resize ? terminalSize(message.toString('utf8', 1)) : undefined;
      if (size) listener(size);
    });
    this.#socket.resume();
  }

  end(): void {
    this.finish({ status: 'Success' });
  }

  /** Sends the final Status and closes. */
  finish(status: StreamStatus): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#send(CHANNEL.error, Buffer.from(JSON.stringify({ metadata: {}, ...status })));
    this.#socket.resume();
    this.#socket.close(1000);
  }

  #send(channel: number, data: Buffer): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(Buffer.concat([Buffer.of(channel), data]), () => {
      if (!this.full) this.#room();
    });
  }

  #room(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const listener of waiting) listener();
  }
}

/** Reads a size as clients send it: `{"Width": 80, "Height": 24}`. Undefined for another text. */
function terminalSize(text: string): TerminalSize | undefined {
  const isSide = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 65_536;
  try {
    const { Width: columns, Height: rows } = JSON.parse(text) ?? {};
    return isSide(rows) && isSide(columns) ? { rows, columns } : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a boolean of a query as the real API server does. */
export function isTrue(value: string | null): boolean {
  return value !== null && ['1', 't', 'true'].includes(value.toLowerCase());
}
