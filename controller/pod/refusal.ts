import { type ApiError, isForbidden, isInvalid, isOverQuota } from '../../core/kube/errors.ts';
import type { Problem } from '../observed/world.ts';

/**
 * Refusals that the API server takes back by itself, soon after it was started or the namespace was made. The service account
 * is not there yet (plugin/pkg/admission/serviceaccount), or nobody has counted a new quota (…/resourcequota). Limits could
 * not be looked up (…/limitranger). An admission plugin or the authorizer has not read its objects (apiserver/pkg/admission;
 * the words of pkg/endpoints/handlers/responsewriters).
 */
const PASSING = new RegExp(
  [
    'error looking up service account',
    'status unknown for quota',
    'error enforcing limit ranges',
    'not yet ready to handle request',
    'is forbidden: etcdserver: ',
    '^\\S+( "[^"]*")? is forbidden: User "[^"]*" cannot ',
  ].join('|'),
);

/**
 * Problem for users from the refusal of a pod, or of an object that it needs first (`object`). `StartFailed` is retried: a
 * refusal that may be temporary for a minute, any other until the session's `timeouts.start`.
 */
export function refusal(error: ApiError, object?: string): Problem {
  const message = object === undefined ? error.message : `${object}: ${error.message}`;
  if (isOverQuota(error)) return { reason: 'QuotaExceeded', message };
  const passes = isForbidden(error) && PASSING.test(error.message);
  if (isInvalid(error) || (isForbidden(error) && !passes)) return { reason: 'PodForbidden', message };
  const words = `The pod cannot be created: ${message}`;
  return { reason: 'StartFailed', message: words, ...(passes ? { passes } : {}) };
}
