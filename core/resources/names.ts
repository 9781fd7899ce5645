/** Every name that Berth gives: its API group, labels, annotations, pods, blobs. */

export const API_GROUP = 'berth.dev';
export const API_VERSION = 'v1alpha1';
export const API_GROUP_VERSION = `${API_GROUP}/${API_VERSION}` as const;

export const LABEL_SESSION = 'berth.dev/session';
export const LABEL_SESSION_UID = 'berth.dev/session-uid';
export const LABEL_INCARNATION = 'berth.dev/incarnation';
export const LABEL_SEQ = 'berth.dev/seq';
export const LABEL_CLASS = 'berth.dev/class';
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'berth';

/** Digest of the Idempotency-Key that an object was created with, and of its user. */
export const LABEL_IDEMPOTENCY_KEY = 'berth.dev/idempotency-key';
/** The digest of the request that an Idempotency-Key was first used with. */
export const ANNOTATION_IDEMPOTENCY = 'berth.dev/idempotency-digest';

/** Bytes of a Blob's data, so that a list of metadata tells how full the store is. */
export const ANNOTATION_BLOB_BYTES = 'berth.dev/blob-bytes';

/** The container that holds the runner. */
export const CONTAINER = 'session';

/** Pod of one incarnation of a session: `s-<session uid>-<incarnation>`, so that it can be made once only. */
export function podName(sessionUID: string, incarnation: number): string {
  return `s-${sessionUID}-${incarnation}`;
}

/** The turn that `spec.input` of a session becomes. */
export function firstTurnName(session: string): string {
  return session;
}

/** Key of something in the store. */
export function storeKey(sessionUID: string, incarnation: number, seq: number): string {
  return `${sessionUID}/${incarnation}/${seq}`;
}

/** The inverse of `storeKey`; undefined for a text that is none. */
export function parseStoreKey(ref: string): { sessionUID: string; incarnation: number; seq: number } | undefined {
  const [, sessionUID, incarnation, seq] = /^([^/]+)\/(\d+)\/(\d+)$/.exec(ref) ?? [];
  return sessionUID ? { sessionUID, incarnation: Number(incarnation), seq: Number(seq) } : undefined;
}

/** Blob of one part (from 1) of what `storeKey` names. */
export function blobName(key: { sessionUID: string; incarnation: number; seq: number }, part: number): string {
  return `b-${key.sessionUID}-${key.incarnation}-${key.seq}-${part}`;
}
