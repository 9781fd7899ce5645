import type { Random } from '../runtime.ts';
import { backoffMs } from './backoff.ts';
import { ApiError, TransportError } from './errors.ts';

const BACKOFF = { baseMs: 100, maxMs: 5_000 };
/** Spread over those whom an overloaded server told to come back at the same second. */
const RETRY_AFTER_SPREAD_MS = 250;

/**
 * Whether the same request may be sent again after `error`. Reads: after any failure that can pass. Writes: only when
 * the server surely did nothing, which is what 429, 503 with Retry-After and a request that never left say.
 */
export function mayRetry(error: unknown, readOnly: boolean): boolean {
  if (error instanceof TransportError) return !isWrongCertificate(error.cause) && (readOnly || !error.sent);
  if (!(error instanceof ApiError)) return false;
  if (error.code === 429) return true;
  if (readOnly) return error.code >= 500 && error.code !== 501;
  return error.code === 503 && error.retryAfterMs !== undefined;
}

/**
 * Whether a reader that goes on for as long as it takes may ask again after `error`. A server that has just started may not
 * know yet whom it knew before (401) or what they may (403): that is believed at once only before the first answer.
 */
export function mayPass(error: unknown, wasAnswered: boolean): boolean {
  if (mayRetry(error, true)) return true;
  return wasAnswered && error instanceof ApiError && (error.code === 401 || error.code === 403);
}

/** Such a refusal is one of configuration and does not pass. */
function isWrongCertificate(cause: unknown): boolean {
  const { code } = (cause ?? {}) as { code?: unknown };
  return (
    typeof code === 'string' && /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)
  );
}

/** Milliseconds to wait before the next attempt after `failures` failed ones. */
export function retryWaitMs(error: unknown, failures: number, random: Random): number {
  if (error instanceof ApiError && error.retryAfterMs !== undefined) {
    return error.retryAfterMs + random.uniform() * RETRY_AFTER_SPREAD_MS;
  }
  return backoffMs(failures, BACKOFF, random);
}
