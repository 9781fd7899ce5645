import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { WebSocket } from 'ws';
import type { BerthError } from '../../clients/typescript/src/errors.ts';
import { follow } from '../../clients/typescript/src/follow.ts';
import { type Answer as ClientAnswer, Http } from '../../clients/typescript/src/http.ts';
import { refusalOf } from '../../clients/typescript/src/refusal.ts';
import { type Call, Caller, type Timing } from '../../clients/typescript/src/retry.ts';
import { onAbort } from '../../core/abort.ts';
import type { StreamEvent } from '../../core/follow/events.ts';
import type { Placed } from '../../core/follow/session-events.ts';
import { parseExact } from '../../core/json.ts';
import type { Connection } from '../../core/kube/connection.ts';
import { type Query, queryString } from '../../core/kube/paths.ts';
import { keepAlive } from '../../core/kube/retry.ts';
import { type Answer, Transport } from '../../core/kube/transport.ts';
import type { CallOptions } from '../../core/kube/types.ts';
import type { Clock } from '../../core/runtime.ts';
import { ownError, ServerError, ServerUnreachable } from './errors.ts';
import { fetchOver, headerOf, type TransportResponse } from './fetch.ts';
import { sendPieces } from './pieces.ts';

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

export interface EventsRequest {
  /** True to get the lines that the agent prints, too. */
  logs?: boolean;
  signal: AbortSignal;
  isLast: (event: StreamEvent) => boolean;
}

/** An answer whose body comes while it is read. */
export interface StreamedAnswer {
  status: number;
  headers: ClientAnswer['headers'];
  body: AsyncIterable<Buffer>;
  /** Returns the header fields that came behind the body; none before its end. */
  trailers: TransportResponse['trailers'];
}

/** Limit of a call, retries included, milliseconds. The server itself gives the cluster 15 s. */
const DEADLINE_MS = 30_000;
/** A stream of events counts as lost after 40 s of silence: the server sends a comment every 15 s. */
const TIMING: Timing = {
  attemptMs: DEADLINE_MS,
  silenceMs: 40_000,
  unansweredMs: DEADLINE_MS,
  waitMs: DEADLINE_MS,
  baseMs: 100,
  maxMs: 5_000,
};
/** Limit for the handshake of a WebSocket, milliseconds. */
const HANDSHAKE_MS = 15_000;
/** Status of an answer that makes the connection a WebSocket. */
const SWITCHING = 101;

export interface ServerClientOptions {
  clock: Clock;
  /** Handler of the HTTP status of every answer, or of the error that came instead. A retry is another request. */
  onRequest?: (outcome: number | Error) => void;
}

/**
 * The client of Berth's HTTP API with the connections, the numbers and the errors of the command line. Its methods reject with a `ServerError`
 * (a refusal), a `ServerUnreachable` (no answer), a CliError where the server is none of Berth's, or the signal's reason.
 */
export class ServerClient {
  readonly #connection: Connection;
  readonly #transport: Transport;
  readonly #caller: Caller;
  readonly #clock: Clock;
  readonly #onRequest: (outcome: number | Error) => void;

  constructor(connection: Connection, { clock, onRequest = () => {} }: ServerClientOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#onRequest = onRequest;
    this.#transport = new Transport(connection, { clock, maxConnections: 8 });
    const server = connection.server.replace(/\/+$/, '');
    const fetch = fetchOver(this.#transport, server);
    const holding = holdingClock(clock);
    this.#caller = new Caller({
      http: new Http({ server, headers: () => this.#headers(), fetch, clock: holding }),
      clock: holding,
      timing: TIMING,
      deadlineMs: DEADLINE_MS,
      maxOutputBytes: Number.POSITIVE_INFINITY,
      parse: parseExact,
      onRequest: (outcome) => onRequest(typeof outcome === 'number' ? outcome : (this.#ownError(outcome) as Error)),
    });
  }

  /** Resolves as `ask` does; its errors become those of the command line. */
  async call<T>(ask: (caller: Caller) => Promise<T>): Promise<T> {
    try {
      return await ask(this.#caller);
    } catch (error) {
      throw this.#ownError(error);
    }
  }

  /** Yields as `ask` does; its errors become those of the command line. */
  async *each<T>(ask: (caller: Caller) => AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* ask(this.#caller);
    } catch (error) {
      throw this.#ownError(error);
    }
  }

  /** Returns the JSON of the answer, with exact numbers. */
  async json(method: Call['method'], path: string, request: ServerRequest = {}): Promise<unknown> {
    return (await this.answer(method, path, request)).value;
  }

  /** Returns the JSON of the answer, with exact numbers, and its headers. */
  answer(
    method: Call['method'],
    path: string,
    { body, key, isRepeatable, ...request }: ServerRequest = {},
  ): Promise<{ value: unknown; headers: ClientAnswer['headers'] }> {
    return this.call((caller) =>
      caller.json({
        ...request,
        method,
        path,
        key,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        isRepeatable: method === 'GET' || key !== undefined || isRepeatable === true,
      }),
    );
  }

  /** Returns the text of the answer. */
  text(path: string, request: Pick<ServerRequest, 'signal'>): Promise<string> {
    return this.call((caller) => caller.text({ ...request, method: 'GET', path }));
  }

  /** Opens a streamed answer, once; resolves when its head has come. */
  async open(path: string, { idleTimeoutMs, headers, ...request }: StreamRequest): Promise<StreamedAnswer> {
    const answer = await this.call((caller) =>
      caller.open({
        ...request,
        method: 'GET',
        path,
        headers: { accept: '*/*', ...headers },
        retry: false,
        silenceMs: idleTimeoutMs ?? Number.POSITIVE_INFINITY,
      }),
    );
    const chunks = () => answer.chunks();
    return {
      status: answer.status,
      headers: answer.headers,
      body: this.each(() => buffers(chunks())),
      trailers: (answer.response as TransportResponse).trailers,
    };
  }

  /**
   * Yields the events of a page until `isLast` holds for one or the signal aborts. A stream that is lost goes on after the last event once the server
   * answers again. Rejects where the first attempt is refused.
   */
  async *events(path: string, { logs, signal, isLast }: EventsRequest): AsyncGenerator<Placed> {
    const query = { logs: logs || undefined };
    // The signal says how long an outage may last.
    const options = { query, signal, deadlineMs: Number.POSITIVE_INFINITY, passes: mayPass };
    for await (const { id, type, data } of this.each((caller) => follow(caller, path, options))) {
      const event = { type, data } as StreamEvent;
      yield { id, event };
      if (isLast(event)) return;
    }
  }

  /** Puts content in pieces, once; resolves with the JSON of the answer. Rejects with the content's own error where it has one. */
  upload(path: string, { query, headers, content, signal }: UploadRequest): Promise<unknown> {
    const what = `PUT ${path}`;
    return sendPieces(content, { what, clock: this.#clock, signal }, async (body, until) => {
      const sent = this.#transport.fetch({
        method: 'PUT',
        path: path + queryString(query),
        headers: { ...(await this.#headers()), accept: 'application/json', ...headers },
        body,
        signal: until,
      });
      const answer = await this.#noted(sent, signal).catch((error) => {
        throw this.#ownError(error);
      });
      if (answer.status !== 200) throw await this.#refusal(answer, what);
      return JSON.parse(answer.body.toString('utf8'));
    });
  }

  /** Opens a WebSocket, once; resolves when it is open, and paused so that its listeners miss nothing. */
  async socket(path: string, { query, signal }: Pick<StreamRequest, 'query' | 'signal'>): Promise<WebSocket> {
    const { server, tls } = this.#connection;
    const url = `${server.replace(/^http/, 'ws').replace(/\/$/, '')}${path}${queryString(query)}`;
    const headers = await this.#headers();
    const { WebSocket } = await import('ws');
    signal.throwIfAborted();
    const socket = new WebSocket(url, { ...tls, headers, perMessageDeflate: false, handshakeTimeout: HANDSHAKE_MS });
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
          buffer(response)
            .then((body) => this.#refusal({ status, headers, body }, `GET ${path}`))
            .then(reject, reject);
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

  async #refusal({ status, headers, body }: Answer<Buffer>, what: string): Promise<unknown> {
    const answer = { status, headers: { get: (name: string) => headerOf(headers, name) }, bytes: async () => body };
    return this.#ownError(await refusalOf(answer, what));
  }

  #ownError(error: unknown): unknown {
    return ownError(error, this.#connection.server);
  }
}

/** A server whose cluster has just started may not know its clients (401) or their rights (403) yet. */
const mayPass = ({ status = 0 }: BerthError) => status === 401 || status === 403 || status >= 500;

/** A clock whose timers keep the program alive: a call that waits for its next try has no socket, and nothing else may. */
function holdingClock(clock: Clock): Pick<Clock, 'monotonic' | 'setTimer'> {
  return {
    monotonic: () => clock.monotonic(),
    setTimer(ms, fn) {
      const release = keepAlive();
      const cancel = clock.setTimer(ms, () => {
        release();
        fn();
      });
      return () => {
        release();
        cancel();
      };
    },
  };
}

async function* buffers(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
