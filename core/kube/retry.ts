import type { Random } from '../runtime.ts';
import { backoffMs } from './backoff.ts';
import { ApiError, TransportError } from './errors.ts';

const BACKOFF = { baseMs: 100, maxMs: 5_000 };
/** Spread of the retries of clients that an overloaded server has asked to come back at the same second. */
const RETRY_AFTER_SPREAD_MS = 250;

/**
 * Reports whether the same request may be sent again after `error`. Reads: after any transient failure. Writes: only
 * when the server surely did nothing. That is known for 429, for 503 with Retry-After, and for a request that never
 * left this process.
 */
export function mayRetry(error: unknown, readOnly: boolean): boolean {
  if (error instanceof TransportError) return !isWrongCertificate(error.cause) && (readOnly || !error.sent);
  if (!(error instanceof ApiError)) return false;
  if (error.code === 429) return true;
  if (readOnly) return error.code >= 500 && error.code !== 501;
  return error.code === 503 && error.retryAfterMs !== undefined;
}

/**
 * Reports whether a reader without a deadline may ask again after `error`. A server that has just started may not know
 * its clients (401) or their rights (403) yet. These answers are final only before the first successful answer.
 */
export function mayPass(error: unknown, wasAnswered: boolean): boolean {
  if (mayRetry(error, true)) return true;
  return wasAnswered && error instanceof ApiError && (error.code === 401 || error.code === 403);
}

/** True for a refused certificate, which is an error of configuration and not transient. */
function isWrongCertificate(cause: unknown): boolean {
  const { code } = (cause ?? {}) as { code?: unknown };
  return (
    typeof code === 'string' && /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)
  );
}

/** Milliseconds to wait before the next attempt after `failures` failures. */
export function retryWaitMs(error: unknown, failures: number, random: Random): number {
  if (error instanceof ApiError && error.retryAfterMs !== undefined) {
    return error.retryAfterMs + random.uniform() * RETRY_AFTER_SPREAD_MS;
  }
  return backoffMs(failures, BACKOFF, random);
}

/**
 * Keeps the program alive during the wait. A call that waits for its next try has no socket, and a program with nothing
 * else to do would end.
 */
export async function held(wait: Promise<void>): Promise<void> {
  await wait.finally(keepAlive());
}

/** Keeps the program alive until the returned function is called. */
export function keepAlive(): () => void {
  const hold = setInterval(() => {}, 2 ** 30);
  return () => clearInterval(hold);
}
