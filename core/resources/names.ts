import { createHash } from 'node:crypto';

/** Every name that Berth gives: its API group, labels, annotations, pods, blobs. */

export const API_GROUP = 'berth.dev';
export const API_VERSION = 'v1alpha1';
export const API_GROUP_VERSION = `${API_GROUP}/${API_VERSION}` as const;

export const LABEL_SESSION = 'berth.dev/session';
export const LABEL_SESSION_UID = 'berth.dev/session-uid';
export const LABEL_INCARNATION = 'berth.dev/incarnation';
export const LABEL_SEQ = 'berth.dev/seq';
/** State, Output or Log: what a Blob is a part of. */
export const LABEL_BLOB_KIND = 'berth.dev/blob-kind';
export const LABEL_CLASS = 'berth.dev/class';
/** Of pods and their NetworkPolicy: see `networkKey`. */
export const LABEL_NETWORK = 'berth.dev/network';
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'berth';

/** Digest of the Idempotency-Key that an object was created with, and of its user. */
export const LABEL_IDEMPOTENCY_KEY = 'berth.dev/idempotency-key';
/** The digest of the request that an Idempotency-Key was first used with. */
export const ANNOTATION_IDEMPOTENCY = 'berth.dev/idempotency-digest';

/** RFC 3339: somebody uses the session, though not by a turn. */
export const ANNOTATION_TOUCHED_AT = 'berth.dev/touched-at';

/** Redaction rules of the class of a pod without a runner, from the moment the pod was made. JSON. */
export const ANNOTATION_REDACTION = 'berth.dev/redaction';

/** Bytes of a Blob's data, so that a list of metadata tells how full the store is. */
export const ANNOTATION_BLOB_BYTES = 'berth.dev/blob-bytes';

/** The container that holds the runner, or without one the session's program. */
export const CONTAINER = 'session';
/** The init container that brings the runner into a pod of any image. */
export const BRINGER = 'runner';

/** Pod of one incarnation of a session: `s-<session uid>-<incarnation>`, so that it can be made once only. */
export function podName(sessionUID: string, incarnation: number): string {
  return `s-${sessionUID}-${incarnation}`;
}

/** The volume of a session: `w-<session uid>`, the same for all its pods. */
export function workspaceName(sessionUID: string): string {
  return `w-${sessionUID}`;
}

/** The turn that `spec.input` of a session becomes. */
export function firstTurnName(session: string): string {
  return session;
}

/** The Approval that the HTTP API and the CLI make for a request: the first one counts, and there is one. */
export function approvalName(requestId: string): string {
  return `approval-${requestId}`;
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

/** None: the pod has no runner, and runs the turn of this uid. */
export const LABEL_RUNNER = 'berth.dev/runner';
export const LABEL_TURN_UID = 'berth.dev/turn-uid';
/** Holds back a pod without a runner until its turn is written Running. */
export const TURN_GATE = 'berth.dev/turn';

/** Where a pod of any image has the runner that was brought along. */
export const RUNNER_DIRECTORY = '/berth-runner';
/** User and group that bring it: another than the session's, so that the agent cannot read what it may only run. */
export const INJECTOR = 65531;

/** Where a session pod has the files of `agent.secretFiles`. */
export const SECRETS_DIRECTORY = '/berth-secrets';

/**
 * What the pods of a class and their NetworkPolicy are labelled with: its name, or its beginning and a digest where that is
 * longer than the 63 characters of a label's value.
 */
export function networkKey(sessionClass: string): string {
  if (sessionClass.length <= 63) return sessionClass;
  const digest = createHash('sha256').update(sessionClass).digest('hex').slice(0, 16);
  // No label of a name ends with "-": cut anywhere, there are no dots.
  return `${sessionClass.slice(0, 46).replaceAll('.', '-')}-${digest}`;
}

/** The NetworkPolicy of a class's pods, one in each namespace that has any. */
export function networkPolicyName(sessionClass: string): string {
  return `berth-${networkKey(sessionClass)}`;
}
