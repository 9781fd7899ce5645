/** Calls: exchanges that are repeated until one succeeds, is refused for good, or the caller's deadline has passed. */
import { type Backoff, backoffMs, type Clock, wait } from './clock.ts';
import { BerthError, ConnectionLost, DeadlineExceeded, NotBerth, ProblemError } from './errors.ts';
import type { Answer, Http, Query } from './http.ts';
import { notBerth, RELEASE_HEADER, refusalOf } from './refusal.ts';
import { expiryOf, nameOf, type TokenSource, tokenOf } from './token.ts';

export interface Limits {
  /** Aborting it ends the waiting, and nothing else: what was asked for goes on. */
  signal?: AbortSignal | undefined;
  /** Limit of the call with all its repeats, milliseconds. */
  deadlineMs?: number | undefined;
}

export interface Call extends Limits {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Query | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON. */
  body?: string | undefined;
  /** Sent as Idempotency-Key. */
  key?: string | undefined;
  /** False for a request that must not be sent again where it may have been taken. Default: true. */
  isRepeatable?: boolean;
  /** False if the first answer counts, also an error, because the caller repeats by itself. Default: true. */
  retry?: boolean | undefined;
  /** Silence after which the answer counts as lost, milliseconds; Infinity: none. Default: that of the timing. */
  silenceMs?: number | undefined;
  /** Time that the server itself is asked to wait, milliseconds. */
  waitMs?: number;
  /** Largest answer, bytes. */
  maxBytes?: number;
}

export interface Timing extends Backoff {
  /** Limit for the answer to one try, beside what the server is asked to wait, milliseconds. */
  attemptMs: number;
  /** Time that the server is asked to wait for the end of a turn, 60 s at most; below the minute after which many proxies give up. Milliseconds. */
  waitMs: number;
  /** Silence after which a stream or the rest of an answer counts as lost; the server is never silent for longer than 15 s. Milliseconds. */
  silenceMs: number;
  /** Time after which a client that never had an answer stops to look for its server, milliseconds. */
  unansweredMs: number;
}

export interface CallerOptions {
  http: Http;
  clock: Clock;
  timing: Timing;
  /** Source of the tokens, which a refusal names; absent where the headers of `http` are nobody's but the caller's. */
  token?: TokenSource | undefined;
  /** Default of `Limits.deadlineMs`. */
  deadlineMs: number;
  /** Largest output that is read as a whole, bytes. */
  maxOutputBytes: number;
  parse: (text: string) => unknown;
  /** Handler of the HTTP status of every answer, or of the error that came instead. A repeat is another request. */
  onRequest: (outcome: number | Error) => void;
}

/** Largest answer with JSON, bytes: pages of lists have 4 MiB and outputs 8 MiB. */
const MAX_JSON_BYTES = 64 * 1024 * 1024;
/** Statuses of an answer that says to come back. 502 only from a proxy: Berth says with it that something is damaged or not reachable. */
const COME_BACK = new Set([408, 429, 503, 504]);

/** An answer with JSON. */
export interface Json<T> {
  value: T;
  text: string;
  headers: Answer['headers'];
}

/** Makes calls. They reject with a BerthError or with the reason of the signal. */
export class Caller {
  readonly clock: Clock;
  readonly timing: Timing;
  readonly deadlineMs: number;
  readonly maxOutputBytes: number;
  readonly parse: (text: string) => unknown;
  /** Release of the API, as its last answer said; undefined before the first. */
  release: string | undefined;
  readonly #options: CallerOptions;
  #wasAnswered = false;

  constructor(options: CallerOptions) {
    this.clock = options.clock;
    this.timing = options.timing;
    this.deadlineMs = options.deadlineMs;
    this.maxOutputBytes = options.maxOutputBytes;
    this.parse = options.parse;
    this.#options = options;
  }

  /** Resolves with the JSON of the answer; its value is undefined where the answer has no content. */
  async json<T>(call: Call): Promise<Json<T>> {
    return this.call(call, async (answer) => {
      const what = nameOfCall(call, this.#options.http);
      const isJson = answer.headers.get('content-type')?.includes('json');
      const text = await this.#text(answer, call);
      if (answer.status === 204) return { value: undefined as T, text, headers: answer.headers };
      if (!isJson) throw notBerth(answer, what, text);
      try {
        return { value: this.parse(text) as T, text, headers: answer.headers };
      } catch (cause) {
        throw new NotBerth(`${what}: the answer is no JSON`, { status: answer.status, cause });
      }
    });
  }

  async text(call: Call): Promise<string> {
    return this.call(call, (answer) => this.#text(answer, call));
  }

  /** Opens a successful answer, whose body the caller reads. */
  open(call: Call): Promise<Answer> {
    return this.call(call, async (answer) => answer);
  }

  /**
   * Deletes. An object that is gone when the request is repeated was deleted by a try that may have been taken.
   */
  async delete(call: Omit<Call, 'method'>): Promise<void> {
    let mayBeDone = false;
    const isGone = (error: unknown) =>
      mayBeDone && error instanceof ProblemError && (error.code === 'NotFound' || error.code === 'UIDMismatch');
    try {
      await this.call(
        { ...call, method: 'DELETE' },
        (answer) => answer.discard(),
        (error) => {
          mayBeDone ||= !wasNotTaken(error);
        },
      );
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Repeats the exchange until `read` has read a successful answer. Calls `onRepeat` with each error that it is repeated after. */
  async call<T>(call: Call, read: (answer: Answer) => Promise<T>, onRepeat?: (error: unknown) => void): Promise<T> {
    const { clock } = this;
    const { signal, deadlineMs = this.deadlineMs, retry = true } = call;
    const start = clock.monotonic();
    const end = start + deadlineMs;
    let wasRefused = false;
    for (let failures = 0; ; ) {
      try {
        return await this.#once(call, end - clock.monotonic(), read);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (!retry) throw withKey(error, call);
        let waitMs: number | undefined;
        if (isUnauthenticated(error)) {
          // A token that was replaced meanwhile is read with the next try.
          const { token } = this.#options;
          if (token === undefined) throw withKey(error, call);
          if (wasRefused || typeof token === 'string') throw await unauthenticated(error, token);
          wasRefused = true;
          waitMs = 0;
        } else if (mayRepeat(error, call)) {
          const asked = (error as BerthError).retryAfterMs;
          if (asked === undefined) failures++;
          waitMs = asked ?? backoffMs(this.timing, failures);
        }
        const now = clock.monotonic();
        if (waitMs === undefined || this.#isNobodyThere(error, now - start)) throw withKey(error, call);
        if (now + waitMs >= end) throw withKey(this.#late(error, call, deadlineMs), call);
        onRepeat?.(error);
        await wait(clock, waitMs, signal);
      }
    }
  }

  async #once<T>(call: Call, leftMs: number, read: (answer: Answer) => Promise<T>): Promise<T> {
    const { http, timing, onRequest } = this.#options;
    const { method, path, query, headers, body, key, signal, waitMs = 0, silenceMs = timing.silenceMs } = call;
    let answer: Answer;
    try {
      answer = await http.exchange({
        method,
        path,
        query,
        headers: {
          accept: 'application/json, */*',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
          ...headers,
        },
        body,
        signal,
        headMs: Math.max(1, Math.min(timing.attemptMs + waitMs, leftMs)),
        silenceMs,
      });
    } catch (error) {
      if (!signal?.aborted) onRequest(error as Error);
      throw error;
    }
    this.#wasAnswered = true;
    onRequest(answer.status);
    this.release = answer.headers.get(RELEASE_HEADER) ?? this.release;
    if (answer.status >= 200 && answer.status < 300) return read(answer);
    throw await refusalOf(answer, nameOfCall(call, http));
  }

  async #text(answer: Answer, { maxBytes = MAX_JSON_BYTES }: Call): Promise<string> {
    const tooLarge = () => new NotBerth(`the answer is larger than ${maxBytes} bytes`, { status: answer.status });
    return new TextDecoder().decode(await answer.bytes(maxBytes, tooLarge));
  }

  /** Reports whether the address is likely wrong: no server of it was ever reached. */
  #isNobodyThere(error: unknown, sinceMs: number): boolean {
    return !this.#wasAnswered && error instanceof ConnectionLost && !error.sent && sinceMs >= this.timing.unansweredMs;
  }

  #late(last: unknown, call: Call, deadlineMs: number): DeadlineExceeded {
    const { retryAfterMs, message } = last as BerthError;
    const asked = retryAfterMs === undefined ? '' : `, and asked to wait ${retryAfterMs / 1000} s`;
    const what = `${call.method} ${call.path}`;
    return new DeadlineExceeded(
      `${what}: no success within ${deadlineMs / 1000} s; the last try met: ${message}${asked}`,
      {
        cause: last,
      },
    );
  }
}

/** Says which token was refused, and when it expired. */
async function unauthenticated(error: ProblemError, token: TokenSource): Promise<ProblemError> {
  const expiry = expiryOf(await tokenOf(token).catch(() => ''));
  const isOver = expiry !== undefined && Date.parse(expiry) < Date.now();
  const Class = error.constructor as typeof ProblemError;
  return new Class({
    ...error,
    errors: error.fields,
    detail: `${error.detail} It is from ${nameOf(token)}${isOver ? `, and expired at ${expiry}` : ''}.`,
  });
}

const isUnauthenticated = (error: unknown): error is ProblemError =>
  error instanceof ProblemError && error.status === 401;

/** Reports whether the same request may be sent again, and whether that can help. */
function mayRepeat(error: unknown, { isRepeatable = true }: Pick<Call, 'isRepeatable'>): boolean {
  if (error instanceof ConnectionLost) return !error.isFinal && (isRepeatable || wasNotTaken(error));
  if (error instanceof NotBerth && error.status === 502) return isRepeatable;
  if (!(error instanceof ProblemError || error instanceof NotBerth) || error.status === undefined) return false;
  return COME_BACK.has(error.status) && (isRepeatable || wasNotTaken(error));
}

/**
 * Reports whether the request has surely changed nothing: it was not sent, or the server says so with 401, with 429, or with a 503 that says
 * when to come back.
 */
function wasNotTaken(error: unknown): boolean {
  if (error instanceof ConnectionLost) return !error.sent;
  if (!(error instanceof ProblemError || error instanceof NotBerth)) return false;
  const { status, retryAfterMs } = error;
  return status === 401 || status === 429 || (status === 503 && retryAfterMs !== undefined);
}

function withKey(error: unknown, { key }: Call): unknown {
  if (key !== undefined && error instanceof BerthError) error.idempotencyKey = key;
  return error;
}

const nameOfCall = ({ method, path }: Call, http: Http) => `${method} ${http.server}${path}`;
