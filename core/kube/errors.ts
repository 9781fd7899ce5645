/** Status object of a failed call, with the fields that are used. */
export interface ApiStatus {
  code: number;
  reason: string;
  message: string;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    retryAfterSeconds?: number;
    causes?: { field?: string; reason?: string; message?: string }[];
  };
}

/**
 * The API server answered with an error. `reason` is Kubernetes' own word (`NotFound`, `Conflict`, `AlreadyExists`, …).
 */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly status: ApiStatus;
  /** Milliseconds that the server asked to wait; undefined if it did not. */
  readonly retryAfterMs: number | undefined;

  constructor(status: ApiStatus, retryAfterMs?: number) {
    super(status.message || `${status.code} ${status.reason}`);
    this.name = 'ApiError';
    this.code = status.code;
    this.reason = status.reason;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The request got no answer: the connection failed or the deadline passed. The write may or may not have happened,
 * unless `sent` is false: then the request never left this process.
 */
export class TransportError extends Error {
  readonly code = 'TransportError';
  readonly sent: boolean;
  constructor(message: string, options: ErrorOptions & { sent?: boolean } = {}) {
    super(message, options);
    this.name = 'TransportError';
    this.sent = options.sent ?? true;
  }
}

const is = (code: number, reason?: string) => (error: unknown) =>
  error instanceof ApiError && error.code === code && (reason === undefined || error.reason === reason);

export const isNotFound = is(404);
/** Reports whether the API server has said no: the request has had no effect and will have none. */
export function isRefusal(error: unknown): boolean {
  return isTooLarge(error) || (error instanceof ApiError && error.code < 500 && error.code !== 408);
}

/** Resolves with undefined where there is no such object. */
export const ifThere = <T>(answer: Promise<T>): Promise<T | undefined> => unless(isNotFound, answer);

/** Resolves with undefined where the caller lacks the right. */
export const ifAllowed = <T>(answer: Promise<T>): Promise<T | undefined> => unless(isForbidden, answer);

async function unless<T>(isExpected: (error: unknown) => boolean, answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isExpected(error)) return undefined;
    throw error;
  }
}

export const isAlreadyExists = is(409, 'AlreadyExists');
export const isConflict = is(409, 'Conflict');
export const isInvalid = is(422);
export const isForbidden = is(403);
/**
 * True if a write named another UID than the object of the name has: a conflict for a deletion or a replacement, and for a patch a field
 * that cannot change.
 */
export const isOtherUID = (error: unknown) =>
  isConflict(error) ||
  (isInvalid(error) &&
    ((error as ApiError).status.details?.causes ?? []).some(({ field }) => field === 'metadata.uid'));
/** plugin/pkg/admission/resourcequota: "… is forbidden: exceeded quota: NAME, requested: …, used: …, limited: …" */
export const isOverQuota = (error: unknown) => isForbidden(error) && /exceeded quota/.test((error as ApiError).message);
/** True if rights in a namespace are missing, or the namespace is: an immediate retry is useless. */
export const isClosed = (error: unknown) => isForbidden(error) || isNotFound(error);
/**
 * True if the API server does not have the pod of a log request. A kubelet that does not know the pod, in the first
 * moments or after a restart, answers with a 404 of `pods/log`. The answer for a node that is gone is a 404 of `nodes`.
 */
export const isPodGone = (error: unknown) =>
  isNotFound(error) && ['pods', undefined].includes((error as ApiError).status.details?.kind);
/** True if the object is too large for the API server itself, or for etcd: the latter is a 500 with this text. */
export const isTooLarge = (error: unknown) =>
  error instanceof ApiError && (error.code === 413 || /request is too large/.test(error.message));
/** True if the position of the watch or list is no longer in the server's history. */
export const isExpired = is(410);
