/** One exchange over HTTP: a request, and its answer with a body that is read as it comes. Knows nothing of Berth's objects. */
import { onAbort, unlessAborted } from './abort.ts';
import type { Clock } from './clock.ts';
import { BerthError, ConnectionLost, NotBerth } from './errors.ts';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Exchange {
  method: string;
  /** Path behind the server's URL, encoded. */
  path: string;
  query?: Query | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  body?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Limit for the head of the answer, milliseconds. */
  headMs: number;
  /** Silence after which the body counts as lost, milliseconds; Infinity: none. */
  silenceMs: number;
}

/** The part of a `Response` that is used. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: Pick<Headers, 'get'>;
  readonly body: {
    getReader(): {
      read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
      cancel(): Promise<void>;
    };
    cancel(): Promise<void>;
  } | null;
  /** `opaqueredirect` for a redirect whose status is hidden. */
  readonly type?: string;
  /** URL of the answer, to which a `location` is relative. */
  readonly url?: string;
}

/**
 * The part of `fetch` that is used. It has to heed `signal`, and not to follow redirects with `redirect: 'manual'`. An error whose `sent` is false says
 * that nothing of the request has left.
 */
export type Fetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    body?: string;
    redirect: 'manual';
    signal: AbortSignal;
  },
) => Promise<FetchResponse>;

/** An answer. Its body has to be read to its end or discarded, or the connection stays open. */
export interface Answer {
  status: number;
  headers: Pick<Headers, 'get'>;
  /** What `fetch` gave: for a caller whose own `fetch` gives more than is used here. */
  response: FetchResponse;
  /** Chunks of the body. Leaving the loop closes the connection. Throws a ConnectionLost, or the reason of the signal. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>;
  /** The whole body; throws `tooLarge()` beyond `maxBytes`. */
  bytes(maxBytes: number, tooLarge: () => Error): Promise<Uint8Array>;
  discard(): Promise<void>;
}

export interface HttpOptions {
  /** URL without a slash at its end. */
  server: string;
  /** Headers of every request, made anew for each. */
  headers: () => Promise<Record<string, string>>;
  fetch: Fetch;
  clock: Clock;
}

/** Codes of errors of a connection that was never made. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
]);
const WRONG_CERTIFICATE = /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

export class Http {
  readonly #options: HttpOptions;

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  get server(): string {
    return this.#options.server;
  }

  /** Resolves when the head of the answer has come. Rejects with a ConnectionLost, a NotBerth, or the reason of the signal. */
  async exchange({ method, path, query, headers, body, signal, headMs, silenceMs }: Exchange): Promise<Answer> {
    signal?.throwIfAborted();
    const { server, fetch, clock } = this.#options;
    const what = `${method} ${server}${path}`;
    const control = new AbortController();
    const forget = onAbort(signal, () => control.abort(signal?.reason));
    let isSent = false;
    const late = () => new ConnectionLost(`${what}: no answer within ${seconds(headMs)}`, { sent: isSent });
    const cancelTimer = clock.setTimer(headMs, () => control.abort(late()));
    try {
      const own = await unlessAborted(this.#options.headers(), control.signal);
      isSent = true;
      const init = {
        method,
        headers: { ...own, ...headers },
        ...(body === undefined ? {} : { body }),
        redirect: 'manual' as const,
        signal: control.signal,
      };
      const response = await unlessAborted(fetch(server + path + queryText(query), init), control.signal);
      if (isRedirect(response)) throw await redirected(response, what);
      return new Received(response, { what, silenceMs, clock, signal, control, forget });
    } catch (error) {
      const own = ownError(error, what, { signal, control });
      forget();
      control.abort(own);
      throw own;
    } finally {
      cancelTimer();
    }
  }
}

interface Reading {
  what: string;
  silenceMs: number;
  clock: Clock;
  signal: AbortSignal | undefined;
  control: AbortController;
  forget: () => void;
}

class Received implements Answer {
  readonly status: number;
  readonly headers: Pick<Headers, 'get'>;
  readonly response: FetchResponse;
  readonly #reading: Reading;

  constructor(response: FetchResponse, reading: Reading) {
    this.status = response.status;
    this.headers = response.headers;
    this.response = response;
    this.#reading = reading;
  }

  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const { what, silenceMs, clock, signal, control, forget } = this.#reading;
    const reader = this.response.body?.getReader();
    let isWhole = false;
    try {
      while (reader) {
        // Time counts only while this client waits for the server, never while its own reader is busy.
        const silent = () => new ConnectionLost(`${what}: nothing came for ${seconds(silenceMs)}`, { sent: true });
        const cancelTimer =
          silenceMs === Number.POSITIVE_INFINITY ? () => {} : clock.setTimer(silenceMs, () => control.abort(silent()));
        const { value } = await unlessAborted(reader.read(), control.signal).finally(cancelTimer);
        if (value === undefined) break;
        yield value;
      }
      isWhole = true;
    } catch (error) {
      throw ownError(error, what, { signal, control });
    } finally {
      forget();
      if (!isWhole) {
        control.abort();
        reader?.cancel().catch(() => {});
      }
    }
  }

  async bytes(maxBytes: number, tooLarge: () => Error): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of this.chunks()) {
      size += chunk.length;
      if (size > maxBytes) throw tooLarge();
      chunks.push(chunk);
    }
    const whole = new Uint8Array(size);
    let at = 0;
    for (const chunk of chunks) {
      whole.set(chunk, at);
      at += chunk.length;
    }
    return whole;
  }

  async discard(): Promise<void> {
    const { control, forget } = this.#reading;
    forget();
    control.abort();
    await this.response.body?.cancel().catch(() => {});
  }
}

function queryText(query: Query = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? '' : `?${given}`;
}

const isRedirect = ({ type, status }: FetchResponse) =>
  type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304);

async function redirected(response: FetchResponse, what: string): Promise<NotBerth> {
  const location = response.headers.get('location') ?? '';
  const url = URL.canParse(location, response.url || undefined)
    ? new URL(location, response.url || undefined)
    : undefined;
  await response.body?.cancel().catch(() => {});
  const to = url ? `to ${url.origin}${url.pathname}` : 'elsewhere';
  return new NotBerth(
    `${what}: the answer is a redirect ${to}, which is not followed: the token is for the given server alone; give the URL that the API itself has`,
    { status: response.status },
  );
}

function ownError(error: unknown, what: string, { signal, control }: Pick<Reading, 'signal' | 'control'>): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof BerthError) return error;
  if (control.signal.aborted && control.signal.reason instanceof BerthError) return control.signal.reason;
  const { code, message } = innermost(error);
  const isFinal = code !== undefined && WRONG_CERTIFICATE.test(code);
  const isUnsent = (error as { sent?: unknown } | undefined)?.sent === false;
  const sent = !isUnsent && (code === undefined || !(isFinal || NOT_SENT.has(code)));
  return new ConnectionLost(`${what}: ${message}`, { sent, isFinal, cause: error });
}

/** Returns what is known of the error below those that `fetch` wraps around it. */
function innermost(error: unknown): { code: string | undefined; message: string } {
  let at = error as { code?: unknown; message?: unknown; cause?: unknown; errors?: unknown[] } | undefined;
  for (let depth = 0; depth < 8; depth++) {
    const inner = at?.cause ?? at?.errors?.[0];
    if (typeof inner !== 'object' || inner === null) break;
    at = inner;
  }
  const code = typeof at?.code === 'string' ? at.code : undefined;
  const message = typeof at?.message === 'string' && at.message !== '' ? at.message : (code ?? 'the connection failed');
  return { code, message };
}

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;
