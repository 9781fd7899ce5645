import { createHash } from 'node:crypto';

/** Names that Berth gives: its API group, labels, annotations, pods and blobs. */

export const API_GROUP = 'berth.dev';
export const API_VERSION = 'v1alpha1';
export const API_GROUP_VERSION = `${API_GROUP}/${API_VERSION}` as const;

export const LABEL_SESSION = 'berth.dev/session';
/** Label of every pod that Berth makes: the uid of its session, empty for a pod of a pool that no session has claimed. */
export const LABEL_SESSION_UID = 'berth.dev/session-uid';
export const LABEL_INCARNATION = 'berth.dev/incarnation';
export const LABEL_SEQ = 'berth.dev/seq';
/** Label of a Blob with the kind of its content: State, Output, Log or Artifacts. */
export const LABEL_BLOB_KIND = 'berth.dev/blob-kind';
export const LABEL_CLASS = 'berth.dev/class';
/** Label of pods and their NetworkPolicy: see `networkKey`. */
export const LABEL_NETWORK = 'berth.dev/network';
/** Label of ConfigMaps that Berth may read, with the value "true". */
export const LABEL_AGENT_FILES = 'berth.dev/agent-files';
/** Label of sessions that build an environment, with the beginning of its hash. */
export const LABEL_ENVIRONMENT = 'berth.dev/environment-hash';
/** Labels of pods from a pool, kept after a claim: the pool's name and uid, and the hash of what the pod was made from. */
export const LABEL_POOL = 'berth.dev/pool';
export const LABEL_POOL_UID = 'berth.dev/pool-uid';
export const LABEL_TEMPLATE = 'berth.dev/template';
/** Label of the sessions and turns of a `berth map`, and of their files, with the map's name. */
export const LABEL_MAP = 'berth.dev/map';
export const LABEL_MANAGED_BY = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'berth';

/** Type of the Secret with the installation's master key. */
export const MASTER_KEY_TYPE = 'berth.dev/master-key';

/** Label with a digest of the Idempotency-Key that created the object, and of its user. */
export const LABEL_IDEMPOTENCY_KEY = 'berth.dev/idempotency-key';
/** Annotation with the digest of the first request that had the Idempotency-Key. */
export const ANNOTATION_IDEMPOTENCY = 'berth.dev/idempotency-digest';

/** Annotation with the time, RFC 3339, of the last use of the session other than by a turn. */
export const ANNOTATION_TOUCHED_AT = 'berth.dev/touched-at';

/** Annotation of a NetworkPolicy with the epoch of the leader that wrote it last, so that a deletion by an earlier one fails. */
export const ANNOTATION_EPOCH = 'berth.dev/epoch';

/** Annotation with the class's redaction rules when a pod without a runner was created. JSON. */
export const ANNOTATION_REDACTION = 'berth.dev/redaction';

/** Annotation with the bytes of a Blob's data, so that a list of metadata shows how full the store is. */
export const ANNOTATION_BLOB_BYTES = 'berth.dev/blob-bytes';

/** Name of the container of the runner, or of the session's program in a pod without a runner. */
export const CONTAINER = 'session';
/** Name of the init container that copies the runner into a pod of any image. */
export const INJECTOR_CONTAINER = 'runner';

/** Directory of a build's pod with uv and the program that uses it. */
export const BUILDER_DIRECTORY = '/berth-uv';
/** Directory of uv's cache in a build's pod, where the class has one. */
export const BUILD_CACHE_DIRECTORY = '/berth-uv-cache';

/** Name of the session that builds the environment of this hash. Equal environments of a namespace share one build. */
export function buildName(hash: string): string {
  return `env-${hash.slice(0, 20)}`;
}

/** Name of the init container and the volume that bring uv into the pod of a build. */
export const BUILDER = 'builder';

/** Name of the pod of one incarnation: `s-<session uid>-<incarnation>`, so that the pod can be created only once. */
export function podName(sessionUID: string, incarnation: number): string {
  return `s-${sessionUID}-${incarnation}`;
}

const POOL_POD = /^p-([0-9a-f-]{36})-([0-9]+)$/;

/**
 * Name of a pool's pod: `p-<pool uid>-<number>`, which no later pod gets. A creation that is sent again after a lost answer
 * has the same name, and makes no second pod. A session that claims the pod keeps the name. It is the pod's host name too,
 * so it has at most 63 characters: those of a number of 16 digits are 55.
 */
export function poolPodName(poolUID: string, number: number): string {
  return `p-${poolUID}-${number}`;
}

/** Returns the uid of the pool that made a pod of this name; undefined for other names. */
export function poolOfPod(name: string): string | undefined {
  return POOL_POD.exec(name)?.[1];
}

/** Returns the number in the name of a pool's pod; NaN for other names. */
export function numberOfPod(name: string): number {
  return Number(POOL_POD.exec(name)?.[2] ?? Number.NaN);
}

/** Name of a session's volume: `w-<session uid>`, the same for all its pods. */
export function workspaceName(sessionUID: string): string {
  return `w-${sessionUID}`;
}

/** Name of the turn that is created from `spec.input` of a session. */
export function firstTurnName(session: string): string {
  return session;
}

/**
 * Name of the Approval that the HTTP API and the CLI create for a request. There is one per request, so the first
 * decision counts.
 */
export function approvalName(requestId: string): string {
  return `approval-${requestId}`;
}

/** Returns the key of content in the store. */
export function storeKey(sessionUID: string, incarnation: number, seq: number): string {
  return `${sessionUID}/${incarnation}/${seq}`;
}

/** Parses a key that `storeKey` returned; undefined for other text. */
export function parseStoreKey(ref: string): { sessionUID: string; incarnation: number; seq: number } | undefined {
  const [, sessionUID, incarnation, seq] = /^([^/]+)\/(\d+)\/(\d+)$/.exec(ref) ?? [];
  return sessionUID ? { sessionUID, incarnation: Number(incarnation), seq: Number(seq) } : undefined;
}

/** Name of the Blob of one part (from 1) of the content of `storeKey`. */
export function blobName(key: { sessionUID: string; incarnation: number; seq: number }, part: number): string {
  return `b-${key.sessionUID}-${key.incarnation}-${key.seq}-${part}`;
}

/** Labels of a pod without a runner: `None`, and the uid of the turn that it runs. */
export const LABEL_RUNNER = 'berth.dev/runner';
export const LABEL_TURN_UID = 'berth.dev/turn-uid';
/** Scheduling gate of a pod without a runner until its turn is written Running. */
export const TURN_GATE = 'berth.dev/turn';

/** Folder of the runner in a pod of any image, where an init container copied it. */
export const RUNNER_DIRECTORY = '/berth-runner';
/**
 * User and group that copy the runner. They differ from the session's, so that the agent can run the files but not read
 * them.
 */
export const INJECTOR_UID = 65531;

/** Folder of the files of `agent.secretFiles` in a session pod. */
export const SECRETS_DIRECTORY = '/berth-secrets';

/**
 * Label value of a class's pods and their NetworkPolicy: the class's name, or its beginning and a digest where the name
 * is longer than the 63 characters of a label's value.
 */
export function networkKey(sessionClass: string): string {
  if (sessionClass.length <= 63) return sessionClass;
  const digest = createHash('sha256').update(sessionClass).digest('hex').slice(0, 16);
  // The dots are replaced because a part of a name could be cut right after one, and no label of a name may end with
  // "-".
  return `${sessionClass.slice(0, 46).replaceAll('.', '-')}-${digest}`;
}

/** Name of the NetworkPolicy of a class's pods; there is one in each namespace with such pods. */
export function networkPolicyName(sessionClass: string): string {
  return `berth-${networkKey(sessionClass)}`;
}
