/** Every name that Berth gives: labels, annotations, pods, blobs. */

export const LABEL_SESSION = 'berth.dev/session';
export const LABEL_SESSION_UID = 'berth.dev/session-uid';
export const LABEL_INCARNATION = 'berth.dev/incarnation';
export const LABEL_CLASS = 'berth.dev/class';
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'berth';

/** The digest of the request that an Idempotency-Key was first used with. */
export const ANNOTATION_IDEMPOTENCY = 'berth.dev/idempotency-digest';

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
