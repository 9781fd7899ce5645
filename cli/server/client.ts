import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { WebSocket } from 'ws';
import { anySignal, onAbort } from '../../core/abort.ts';
import { defined } from '../../core/defined.ts';
import { parseExact } from '../../core/json.ts';
import type { Connection } from '../../core/kube/connection.ts';
import { TransportError } from '../../core/kube/errors.ts';
import { type Query, queryString } from '../../core/kube/paths.ts';
import { held, mayRetry, retryWaitMs } from '../../core/kube/retry.ts';
import { type Answer, type StreamedAnswer, Transport } from '../../core/kube/transport.ts';
import type { CallOptions } from '../../core/kube/types.ts';
import { type Clock, delay, type Random } from '../../core/runtime.ts';
import { unreachable } from '../errors.ts';
import { ServerError, ServerUnreachable, serverError } from './errors.ts';

export interface ServerRequest extends CallOptions {
  query?: Query;
  body?: object;
  /** Sent as Idempotency-Key, which makes a POST safe to repeat. */
  key?: string;
  /** True for a request that may be sent again after any outcome. GET always may. */
  isRepeatable?: boolean;
}

export interface UploadRequest {
  query?: Query;
  headers: Record<string, string>;
  /** Called once; its error ends the request and is what it rejects with. */
  content: AsyncIterable<Buffer>;
  signal: AbortSignal;
}

export interface StreamRequest {
  query?: Query;
  headers?: Record<string, string>;
  signal: AbortSignal;
  /** Silence after which the stream counts as lost, milliseconds; absent: none. */
  idleTimeoutMs?: number;
}

/** Limit of a call, retries included, milliseconds. The server itself gives the cluster 15 s. */
const DEADLINE_MS = 30_000;
/** Time without a byte that the server takes, or without its answer to the last, milliseconds. It may wait 60 s for the session. */
const UPLOAD_STALL_MS = 90_000;
/** Limit for the head of a stream's answer, milliseconds. */
const STREAM_HEAD_MS = 15_000;
const ERROR_BYTES = 64 * 1024;
/** Status of an answer that makes the connection a WebSocket. */
const SWITCHING = 101;

export interface ServerClientOptions {
  clock: Clock;
  random: Random;
  /** Handler of the HTTP status of every answer, or of the error that came instead. A retry is another request. */
  onRequest?: (outcome: number | Error) => void;
}

/**
 * Client of a server of Berth's HTTP API. Its methods reject with a `ServerError` (a refusal), a `ServerUnreachable` (no
 * answer), a CliError where the server is none of Berth's, or the signal's reason.
 */
export class ServerClient {
  readonly #connection: Connection;
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #onRequest: (outcome: number | Error) => void;

  constructor(connection: Connection, { clock, random, onRequest = () => {} }: ServerClientOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#random = random;
    this.#onRequest = onRequest;
    this.#transport = new Transport(connection, { clock, maxConnections: 8 });
  }

  /** Returns the JSON of the answer, with exact numbers. */
  async json(method: string, path: string, request: ServerRequest = {}): Promise<unknown> {
    const { status, headers, body } = await this.bytes(method, path, request);
    if (status === 204) return undefined;
    if (!String(headers['content-type'] ?? '').includes('json')) throw this.#notBerth(status);
    try {
      return parseExact(body.toString('utf8'));
    } catch (error) {
      throw new ServerUnreachable(`${method} ${path}: the answer is no JSON`, { cause: error });
    }
  }

  /** Returns the whole answer. */
  async bytes(method: string, path: string, request: ServerRequest = {}): Promise<Answer<Buffer>> {
    const { query, key, signal, retry = true, deadlineMs = DEADLINE_MS } = request;
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const isRepeatable = method === 'GET' || key !== undefined || request.isRepeatable === true;
    const end = this.#clock.monotonic() + deadlineMs;
    for (let failures = 1; ; failures++) {
      try {
        signal?.throwIfAborted();
        const sent = this.#transport.fetch({
          method,
          path: path + queryString(query),
          headers: {
            ...(await this.#headers()),
            accept: 'application/json, */*',
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(key === undefined ? {} : { 'idempotency-key': key }),
          },
          ...defined({ body }),
          signal,
          timeoutMs: Math.max(1, end - this.#clock.monotonic()),
        });
        const answer = await this.#noted(sent, signal);
        if (answer.status >= 200 && answer.status < 300) return answer;
        throw this.#refusal(answer);
      } catch (caught) {
        const error = ownError(caught);
        if (!retry || !mayRetry(error, isRepeatable)) throw error;
        const waitMs = retryWaitMs(error, failures, this.#random);
        if (this.#clock.monotonic() + waitMs >= end) throw error;
        await held(delay(this.#clock, waitMs, signal));
      }
    }
  }

  /** Opens a streamed answer, once; resolves with its body when its head has come. */
  async stream(path: string, request: StreamRequest): Promise<AsyncIterable<Buffer>> {
    return (await this.open(path, request)).body;
  }

  /** Opens a streamed answer, once; resolves when its head has come. */
  async open(path: string, { query, headers, signal, idleTimeoutMs }: StreamRequest): Promise<StreamedAnswer> {
    try {
      const opening = this.#transport.stream({
        method: 'GET',
        path: path + queryString(query),
        headers: { ...(await this.#headers()), accept: '*/*', ...headers },
        signal,
        timeoutMs: STREAM_HEAD_MS,
        ...defined({ idleTimeoutMs }),
      });
      const answer = (await this.#noted(opening, signal)) as StreamedAnswer;
      if (answer.status === 200 || answer.status === 206) return { ...answer, body: withOwnErrors(answer.body) };
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of answer.body) {
        chunks.push(chunk);
        size += chunk.length;
        if (size > ERROR_BYTES) break;
      }
      throw this.#refusal({ ...answer, body: Buffer.concat(chunks) });
    } catch (error) {
      throw ownError(error);
    }
  }

  /** Puts content in pieces, once; resolves with the JSON of the answer. Rejects with the content's own error where it has one. */
  async upload(path: string, { query, headers, content, signal }: UploadRequest): Promise<unknown> {
    const stalled = new AbortController();
    let cancel = () => {};
    const arm = () => {
      cancel();
      const late = new ServerUnreachable(`PUT ${path}: nothing was taken for ${UPLOAD_STALL_MS / 1000} s`);
      cancel = this.#clock.setTimer(UPLOAD_STALL_MS, () => stalled.abort(late));
    };
    let failure: { error: unknown } | undefined;
    const pieces = async function* () {
      try {
        for await (const piece of content) {
          arm();
          yield piece;
        }
        arm();
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    arm();
    try {
      const sent = this.#transport.fetch({
        method: 'PUT',
        path: path + queryString(query),
        headers: { ...(await this.#headers()), accept: 'application/json', ...headers },
        body: Readable.from(pieces(), { objectMode: false }),
        signal: anySignal(signal, stalled.signal),
      });
      const answer = await this.#noted(sent, signal);
      if (answer.status !== 200) throw this.#refusal(answer);
      return JSON.parse(answer.body.toString('utf8'));
    } catch (error) {
      throw failure?.error ?? ownError(error);
    } finally {
      cancel();
    }
  }

  /** Opens a WebSocket, once; resolves when it is open, and paused so that its listeners miss nothing. */
  async socket(path: string, { query, signal }: Pick<StreamRequest, 'query' | 'signal'>): Promise<WebSocket> {
    const { server, tls } = this.#connection;
    const url = `${server.replace(/^http/, 'ws').replace(/\/$/, '')}${path}${queryString(query)}`;
    const headers = await this.#headers();
    const { WebSocket } = await import('ws');
    signal.throwIfAborted();
    const socket = new WebSocket(url, { ...tls, headers, perMessageDeflate: false, handshakeTimeout: STREAM_HEAD_MS });
    const forget = onAbort(signal, () => socket.terminate());
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('open', () => {
          socket.pause();
          resolve();
        });
        socket.on('error', (cause) => reject(new ServerUnreachable(`${server}: ${cause.message}`, { cause })));
        socket.once('unexpected-response', (_request, response: IncomingMessage) => {
          const { statusCode: status = 0, headers } = response;
          buffer(response).then((body) => reject(this.#refusal({ status, headers, body })), reject);
        });
      });
      this.#onRequest(SWITCHING);
      return socket;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      socket.terminate();
      this.#onRequest(error instanceof ServerError ? error.code : (error as Error));
      throw error;
    } finally {
      forget();
    }
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async #noted<B>(request: Promise<Answer<B>>, signal: AbortSignal | undefined): Promise<Answer<B>> {
    try {
      const answer = await request;
      this.#onRequest(answer.status);
      return answer;
    } catch (error) {
      if (!signal?.aborted) this.#onRequest(error as Error);
      throw error;
    }
  }

  async #headers(): Promise<Record<string, string>> {
    return { ...(await this.#connection.headers()), 'user-agent': 'berth-cli' };
  }

  #refusal({ status, headers, body }: Answer<Buffer>): Error {
    const seconds = Number(headers['retry-after']);
    const retryAfterMs = headers['retry-after'] !== undefined && seconds >= 0 ? seconds * 1000 : undefined;
    const text = body.toString('utf8');
    const known = serverError(status, text, retryAfterMs);
    if (known) return known;
    // A proxy before the server answers like this while the server is not there.
    if (status === 429 || status >= 500) {
      const message = `${this.#connection.server} answered ${status}`;
      return new ServerError({ code: status, reason: 'ProxyError', message }, retryAfterMs);
    }
    return this.#notBerth(status);
  }

  #notBerth(status: number): Error {
    return unreachable(
      `${this.#connection.server} is not Berth's HTTP API: it answered ${status} with something else; --server is the URL before /v1`,
    );
  }
}

function ownError(error: unknown): unknown {
  if (!(error instanceof TransportError) || error instanceof ServerUnreachable) return error;
  return new ServerUnreachable(error.message, { cause: error.cause, sent: error.sent });
}

async function* withOwnErrors(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    throw ownError(error);
  }
}
