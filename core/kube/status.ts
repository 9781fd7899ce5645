import { defined } from '../defined.ts';
import type { ApiStatus } from './errors.ts';

const REASONS: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/**
 * Returns the Status of a failed call. Proxies and kubelets send other bodies: then the Status is made from the HTTP
 * code, and the first line of the text becomes the message. `what` names the call.
 */
export function toStatus(body: unknown, code: number, what: string): ApiStatus {
  const status = (typeof body === 'object' && body !== null ? body : {}) as Partial<ApiStatus>;
  const real = typeof status.code === 'number' && status.code > 0 ? status.code : code;
  const text = typeof body === 'string' ? body.trim().split('\n', 1)[0]!.slice(0, 500) : '';
  return {
    code: real,
    reason: status.reason || REASONS[real] || 'Unknown',
    message: status.message || (text === '' ? `${what}: HTTP ${real}` : `${what}: HTTP ${real}: ${text}`),
    ...defined({ details: status.details }),
  };
}
