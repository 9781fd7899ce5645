import type { Readable } from 'node:stream';
import type { Dispatcher, Pool as PoolType } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';
import { defined } from '../defined.ts';
import type { Clock } from '../runtime.ts';
import type { Connection } from './connection.ts';
import { TransportError } from './errors.ts';

export interface Request {
  method: string;
  /** Path and query to send. */
  path: string;
  headers: Record<string, string>;
  body?: string | Readable;
  signal?: AbortSignal | undefined;
  /** Limit for the headers of the answer (stream) or the whole answer (fetch), milliseconds; absent: none. */
  timeoutMs?: number;
  /** Limit of each wait for more of a finite stream's body, milliseconds; absent: no limit. */
  idleTimeoutMs?: number;
}

export interface Answer<B> {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: B;
}

/** An answer whose body comes while it is read. */
export interface StreamedAnswer extends Answer<AsyncIterable<Buffer>> {
  /** Returns the header fields that came behind the body; none before its end. */
  trailers(): Answer<unknown>['headers'];
}

/** Bytes of a body that are read ahead of its reader; then the socket is paused until the reader continues. */
const READ_AHEAD_BYTES = 1024 * 1024;
/**
 * Shorter than the API server's own 90 s: a request sent on a connection that the server is about to close would fail.
 */
const KEEP_ALIVE_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * HTTP/1.1 client of one server over kept-alive connections. Streams (watches, log follows) have connections of their
 * own, so that open streams never take the `maxConnections` for requests.
 */
export class Transport {
  readonly #requests: PoolType;
  readonly #streams: PoolType;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #clock: Clock;

  constructor(connection: Connection, options: { clock: Clock; maxConnections: number }) {
    const url = new URL(connection.server);
    this.#origin = url.origin;
    this.#basePath = url.pathname.replace(/\/+$/, '');
    this.#clock = options.clock;
    const shared = {
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      connect: { ...connection.tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: 30_000 },
    };
    this.#requests = new Pool(this.#origin, { ...shared, connections: options.maxConnections });
    this.#streams = new Pool(this.#origin, shared);
  }

  /** Returns the whole answer. Rejects with a TransportError or the signal's reason. */
  async fetch(request: Request): Promise<Answer<Buffer>> {
    const exchange = new Exchange(this.#requests, this.#origin, this.#basePath, request, this.#clock);
    try {
      const { status, headers, body } = await exchange.answer;
      const chunks: Buffer[] = [];
      for await (const chunk of body) chunks.push(chunk);
      return { status, headers, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
    } finally {
      exchange.settle();
    }
  }

  /** Returns the answer's head, and its body as it comes. The reader must iterate the body, or abort the signal. */
  async stream(request: Request): Promise<StreamedAnswer> {
    const exchange = new Exchange(this.#streams, this.#origin, this.#basePath, request, this.#clock);
    const answer = await exchange.answer;
    exchange.stopTimer();
    return { ...answer, trailers: () => exchange.trailers };
  }

  /** Closes every connection; requests under way fail. */
  async close(): Promise<void> {
    const closed = new TransportError(`the client of ${this.#origin} was closed`);
    await Promise.all([this.#requests.destroy(closed), this.#streams.destroy(closed)]);
  }
}

/** A request and its answer. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<Answer<AsyncIterable<Buffer>>>;
  trailers: Answer<unknown>['headers'] = {};
  readonly #request: Request;
  readonly #where: string;
  readonly #clock: Clock;
  #resolve!: (answer: Answer<AsyncIterable<Buffer>>) => void;
  #reject!: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #sent = false;
  #ended = false;
  #failed = false;
  #failure: unknown;
  #queue: Buffer[] = [];
  #queued = 0;
  #wake: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  readonly #onAbort = () => this.#fail(this.#request.signal?.reason);

  constructor(pool: PoolType, origin: string, basePath: string, request: Request, clock: Clock) {
    this.#request = request;
    this.#clock = clock;
    this.#where = `${request.method} ${origin}${basePath}${request.path.replace(/\?.*/s, '')}`;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { signal, timeoutMs } = request;
    if (signal?.aborted) {
      this.#fail(signal.reason);
      return;
    }
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (timeoutMs !== undefined) this.#limit('no answer', timeoutMs);
    pool.dispatch(
      {
        method: request.method as Dispatcher.HttpMethod,
        path: basePath + request.path,
        headers: request.headers,
        ...defined({ body: request.body }),
      },
      this,
    );
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The caller gave up while the request waited for a connection: nothing has been written, and nothing will be.
    if (this.#failed) controller.abort(new Error('given up'));
    else this.#sent = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Answer<unknown>['headers'],
  ): void {
    // A proxy may send an informational answer first (102, 103).
    if (status < 200) return;
    this.#resolve({ status, headers, body: this.#body() });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#queue.push(chunk);
    this.#queued += chunk.length;
    if (this.#queued > READ_AHEAD_BYTES) controller.pause();
    this.#wake?.();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: Answer<unknown>['headers']): void {
    this.#ended = true;
    this.trailers = trailers;
    this.settle();
    this.#wake?.();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#failed) return;
    this.#fail(
      error instanceof TransportError
        ? error
        : new TransportError(`${this.#where}: ${describe(error)}`, { cause: error, sent: this.#sent }),
    );
  }

  /** Clears the timer and the abort listener. */
  settle(): void {
    this.stopTimer();
    this.#request.signal?.removeEventListener('abort', this.#onAbort);
  }

  stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  async *#body(): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const chunk = this.#queue.shift();
        if (chunk !== undefined) {
          this.#queued -= chunk.length;
          if (this.#queued <= READ_AHEAD_BYTES / 2) this.#controller?.resume();
          yield chunk;
        } else if (this.#failed) {
          throw this.#failure;
        } else if (this.#ended) {
          return;
        } else {
          const { idleTimeoutMs } = this.#request;
          if (idleTimeoutMs !== undefined) this.#limit('no more of the answer', idleTimeoutMs);
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          if (idleTimeoutMs !== undefined) this.stopTimer();
        }
      }
    } finally {
      if (!this.#ended && !this.#failed) this.#fail(new Error('the reader left'));
    }
  }

  #limit(what: string, ms: number): void {
    this.#cancelTimer = this.#clock.setTimer(ms, () =>
      this.#fail(new TransportError(`${this.#where}: ${what} within ${Math.round(ms)} ms`, { sent: this.#sent })),
    );
  }

  #fail(error: unknown): void {
    if (this.#failed || this.#ended) return;
    this.#failed = true;
    this.#failure = error;
    this.settle();
    this.#reject(error);
    this.#wake?.();
    this.#controller?.abort(error instanceof Error ? error : new Error('aborted'));
  }
}

function describe(error: Error & { code?: string }): string {
  if (error instanceof AggregateError) return error.errors.map((inner) => describe(inner as Error)).join('; ');
  const text = error.message || error.name;
  return error.code && !text.includes(error.code) ? `${text} (${error.code})` : text;
}
