import type { IncomingMessage } from 'node:http';
import WebSocket from 'ws';
import type { Clock, Logger } from '../runtime.ts';
import type { Connection } from './connection.ts';
import { ApiError, type ApiStatus, TransportError } from './errors.ts';
import { queryString } from './paths.ts';
import { toStatus } from './status.ts';
import type { AttachOptions, PodStream, StreamEnd } from './types.ts';

/** The fifth version of the remote command protocol: a channel byte before each message, and half-close. */
const PROTOCOL = 'v5.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const CLOSE = 255;

const OPEN_TIMEOUT_MS = 10_000;
const PING_MS = 30_000;
/** Limit of a message: 32 KiB of content, and what a protocol inside puts before it. */
const WRITE_PIECE_BYTES = 33 * 1024;
/** Bytes on their way to the socket above which writers wait. */
const WRITE_BUFFER_BYTES = 256 * 1024;
/** Time that the server has to answer a close before the connection is cut. */
const CLOSE_TIMEOUT_MS = 2_000;
const ERROR_BODY_BYTES = 64 * 1024;
const ERROR_TEXT_BYTES = 64 * 1024;

interface Surroundings {
  connection: Connection;
  clock: Clock;
  log: Logger;
  userAgent: string;
}

/**
 * Opens attach or exec at `path`. Rejects with an ApiError (the server refused the upgrade), a TransportError or the
 * signal's reason. The pod may turn out to be missing after this resolves: then `closed` reports it.
 */
export async function openPodStream(
  path: string,
  options: AttachOptions & { command?: string[] },
  surroundings: Surroundings,
): Promise<PodStream> {
  const { connection, clock } = surroundings;
  options.signal?.throwIfAborted();
  const { container, stdin = false, stdout = false, stderr = false } = options;
  const commands = (options.command ?? []).map((word) => `&command=${encodeURIComponent(word)}`).join('');
  const query = queryString({ container, stdin, stdout, stderr, tty: false }) + commands;
  const where = `${connection.server}${path}`;
  const headers = await connection.headers();
  options.signal?.throwIfAborted();

  const socket = new WebSocket(`${connection.server.replace(/^http/, 'ws')}${path}${query}`, PROTOCOL, {
    ...connection.tls,
    headers: { ...headers, 'user-agent': surroundings.userAgent },
    perMessageDeflate: false,
    skipUTF8Validation: true,
  });
  // Created before the handshake is over: the first message may come in the same packet as the end of the handshake.
  const stream = new Stream(socket, options, surroundings, where);
  await new Promise<void>((resolve, reject) => {
    const openTimeoutMs = options.openTimeoutMs ?? OPEN_TIMEOUT_MS;
    const settle = (error?: unknown) => {
      cancel();
      options.signal?.removeEventListener('abort', onAbort);
      if (error === undefined) return resolve();
      reject(error);
      socket.terminate();
    };
    const onAbort = () => settle(options.signal?.reason);
    const cancel = clock.setTimer(openTimeoutMs, () =>
      settle(new TransportError(`${where}: not open within ${openTimeoutMs} ms`)),
    );
    options.signal?.addEventListener('abort', onAbort, { once: true });
    socket.once('open', () => settle());
    socket.once('error', (error) => settle(new TransportError(`${where}: ${error.message}`, { cause: error })));
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      readError(response, where).then(settle, (error) =>
        settle(new TransportError(`${where}: HTTP ${response.statusCode}, and its body failed`, { cause: error })),
      );
    });
  });
  stream.opened();
  return stream;
}

class Stream implements PodStream {
  readonly closed: Promise<StreamEnd>;
  readonly #socket: WebSocket;
  readonly #options: AttachOptions & { command?: string[] };
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #where: string;
  #settle!: (end: StreamEnd) => void;
  #end: StreamEnd | undefined;
  #local = false;
  #failure = '';
  #status: ApiStatus | undefined;
  #alive = true;
  #paused = false;
  #isTerminated = false;
  #cancelTimer: () => void = () => {};
  readonly #onAbort = () => this.#terminate();

  constructor(
    socket: WebSocket,
    options: AttachOptions & { command?: string[] },
    { clock, log }: Surroundings,
    where: string,
  ) {
    this.#socket = socket;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#where = where;
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    socket.on('message', (data) => this.#receive(data as Buffer));
    socket.on('pong', () => {
      this.#alive = true;
    });
    socket.on('error', (error) => {
      this.#failure ||= error.message;
    });
    socket.on('close', (code, reason) => this.#onClose(code, reason.toString()));
  }

  opened(): void {
    if (this.#end !== undefined) return;
    const { signal } = this.#options;
    if (signal?.aborted) {
      this.#terminate();
      return;
    }
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#armPing();
  }

  async write(data: Buffer | string): Promise<void> {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    for (let from = 0; from < bytes.length; from += WRITE_PIECE_BYTES) {
      const piece = bytes.subarray(from, from + WRITE_PIECE_BYTES);
      const message = Buffer.allocUnsafe(piece.length + 1);
      message[0] = STDIN;
      piece.copy(message, 1);
      await this.#send(message);
    }
  }

  closeStdin(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(Buffer.from([CLOSE, STDIN]));
  }

  pause(): void {
    if (this.#paused || this.#local || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    // The answer to a ping may wait behind unread data.
    this.#alive = true;
    this.#socket.resume();
  }

  close(): void {
    if (this.#end !== undefined || this.#local) return;
    if (this.#paused) {
      // The answer to a close would wait behind unread data.
      this.#terminate();
      return;
    }
    this.#local = true;
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.setTimer(CLOSE_TIMEOUT_MS, () => this.#socket.terminate());
    this.#socket.close(1000);
  }

  #terminate(): void {
    this.#local = true;
    this.#isTerminated = true;
    this.#socket.terminate();
  }

  #send(message: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#socket.readyState !== WebSocket.OPEN) {
        return reject(new TransportError(`${this.#where}: the stream is closed`, { sent: false }));
      }
      let full = false;
      this.#socket.send(message, (error) => {
        if (error) reject(new TransportError(`${this.#where}: ${error.message}`, { cause: error }));
        else if (full) resolve();
      });
      full = this.#socket.bufferedAmount > WRITE_BUFFER_BYTES;
      if (!full) resolve();
    });
  }

  #receive(data: Buffer): void {
    const payload = data.subarray(1);
    if (data[0] === STDOUT) this.#deliver(this.#options.onStdout, payload);
    else if (data[0] === STDERR) this.#deliver(this.#options.onStderr, payload);
    else if (data[0] === ERROR && payload.length > 0) {
      this.#status = parseStatus(payload.subarray(0, ERROR_TEXT_BYTES).toString('utf8'));
    }
  }

  /** Catches errors of a consumer, which must not stop the drain: a stalled attach blocks the container's writes. */
  #deliver(consumer: ((chunk: Buffer) => void) | undefined, payload: Buffer): void {
    if (payload.length === 0 || this.#isTerminated) return;
    try {
      consumer?.(payload);
    } catch (error) {
      this.#log.error({ where: this.#where, err: error }, 'consumer of a pod stream failed');
    }
  }

  /** Pings the server: proxies drop silent connections, and a dead peer is not noticed otherwise. */
  #armPing(): void {
    this.#cancelTimer = this.#clock.setTimer(PING_MS, () => {
      if (this.#paused) return this.#armPing();
      if (!this.#alive) {
        this.#failure = `no answer to a ping within ${PING_MS} ms`;
        this.#socket.terminate();
        return;
      }
      this.#alive = false;
      this.#socket.ping();
      this.#armPing();
    });
  }

  #onClose(code: number, reason: string): void {
    this.#cancelTimer();
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#end = streamEnd({
      status: this.#status,
      local: this.#local,
      failure: this.#failure || (code === 1000 || code === 1005 ? reason : `closed with ${code} ${reason}`.trim()),
      exec: this.#options.command !== undefined,
    });
    this.#settle(this.#end);
  }
}

interface Ending {
  status: ApiStatus | undefined;
  local: boolean;
  failure: string;
  exec: boolean;
}

/** An orderly end always comes with a Status. The success of an attach says nothing about the process. */
function streamEnd({ status, local, failure, exec }: Ending): StreamEnd {
  if (status === undefined) {
    return { by: local ? 'local' : 'connection', ...(failure === '' ? {} : { message: failure }) };
  }
  const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message;
  const exitCode = cause === undefined ? undefined : Number.parseInt(cause, 10);
  if (exitCode !== undefined && Number.isInteger(exitCode)) {
    return { by: 'remote', exitCode, message: status.message };
  }
  if (status.reason === 'Success') return exec ? { by: 'remote', exitCode: 0 } : { by: 'remote' };
  return { by: 'remote', message: status.message };
}

function parseStatus(text: string): ApiStatus {
  try {
    const body = JSON.parse(text) as { status?: string };
    const status = toStatus(body, 500, 'remote command');
    return body.status === 'Success' ? { ...status, reason: 'Success' } : status;
  } catch {
    return { code: 500, reason: 'InternalError', message: text.trim() };
  }
}

async function readError(response: IncomingMessage, where: string): Promise<ApiError> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > ERROR_BODY_BYTES) break;
  }
  const text = Buffer.concat(chunks).toString('utf8');
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // The kubelet answers with plain text.
  }
  return new ApiError(toStatus(body, response.statusCode ?? 500, where));
}
