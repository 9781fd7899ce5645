/**
 * The Kubernetes API as Berth uses it: raw JSON objects, typed by the caller. The real client and the simulated API
 * implement one interface.
 */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  /** RFC 3339, whole seconds. */
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** An object of a namespaced resource. */
export interface NamespacedObject extends KubeObject {
  metadata: ObjectMeta & { namespace: string };
}

/** Metadata as the API server returns it. */
export type ServerMeta = ObjectMeta & Required<Pick<ObjectMeta, 'uid' | 'resourceVersion' | 'creationTimestamp'>>;

/** An object as the API server returns it. */
export type Stored<T extends KubeObject = KubeObject> = T & { metadata: ServerMeta };

export interface KubeList<T extends KubeObject> {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: Stored<T>[];
}

/** Names of a resource in a URL. `group` is '' for the core group. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /**
   * True if objects hold JSON of users: numbers are kept as core/json.ts reads them. Otherwise they are JavaScript
   * numbers.
   */
  readonly exactNumbers?: true;
  /** Carries the object's type only; never set. */
  readonly type?: T;
}

export interface ObjectRef {
  /** Namespace; undefined for cluster-scoped resources. */
  namespace?: string;
  name: string;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Ends the call, retries included; milliseconds. Default: the client's. */
  deadlineMs?: number;
  /** False if the first answer counts, even an error. Default: true. */
  retry?: boolean;
}

export interface ListOptions extends CallOptions {
  /** Namespace. Default: all namespaces. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  /** '0' may be served from the API server's cache; absent is a consistent read. */
  resourceVersion?: string;
  /** True if objects come with their metadata only; their type shows more. */
  metadataOnly?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Preconditions: 409 Conflict when the object has another uid or version. */
  uid?: string;
  resourceVersion?: string;
  gracePeriodSeconds?: number;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

export interface WriteOptions extends CallOptions {
  subresource?: 'status' | 'scale';
  fieldManager?: string;
}

export type WatchEvent<T extends KubeObject> =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Stored<T> }
  | { type: 'BOOKMARK'; resourceVersion: string };

export interface WatchOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Version after which events are sent. */
  resourceVersion: string;
  /** Asks the server to end the watch after this time; seconds. */
  timeoutSeconds?: number;
  /** Media type of the objects of the events, for example a Table; default: the resource as JSON. */
  accept?: string;
  signal: AbortSignal;
}

/**
 * Interface of the Kubernetes API. Every method rejects with an `ApiError` (an answer of the server), a
 * `TransportError` (no answer: the effect of a write is unknown) or the signal's reason.
 */
export interface KubeApi {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<Stored<T>>;
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  /** Creates the object in its own `metadata.namespace`. */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  /** Replaces the whole object (PUT). With a `metadata.resourceVersion` a concurrent write gives 409 Conflict. */
  replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: object,
    options?: WriteOptions & { type?: PatchType },
  ): Promise<Stored<T>>;
  delete<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /**
   * Opens one watch connection, which ends when the server ends it. 410 is an `ApiError` with reason `Expired` or
   * `Gone`.
   */
  watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /**
   * Reads the log of a pod's container, whole (`follow: false`) or live. With several containers the API server
   * requires the name of one. 400 while there is no log yet: the pod has no node, or its container has not started.
   */
  podLog(
    ref: ObjectRef,
    options: {
      container: string;
      follow?: boolean;
      previous?: boolean;
      sinceTime?: string;
      tailLines?: number;
      limitBytes?: number;
      /** True: each line begins with the time at which it was written, RFC 3339, and a space. */
      timestamps?: boolean;
      signal?: AbortSignal;
    },
  ): AsyncIterable<Buffer>;
  /** Attaches to a running container's stdin, stdout and stderr (those asked for). */
  attach(ref: ObjectRef, options: AttachOptions): Promise<PodStream>;
  exec(ref: ObjectRef, options: AttachOptions & { command: string[] }): Promise<PodStream>;
}

export interface AttachOptions {
  container: string;
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  /** Ends the attempt, and later the stream. */
  signal?: AbortSignal;
  /** Limit for the opening handshake, milliseconds. */
  openTimeoutMs?: number;
  /** Handler of every piece as it arrives. The stream is always drained, so the handler must bound its own memory. */
  onStdout?: (chunk: Buffer) => void;
  onStderr?: (chunk: Buffer) => void;
}

export interface PodStream {
  /** Sends to stdin; resolves once the bytes are handed to the socket's buffer and it has room again. */
  write(data: Buffer | string): Promise<void>;
  /** Half-closes stdin (v5 protocol). */
  closeStdin(): void;
  /**
   * Stops and goes on reading. While nothing is read, what the container writes is blocked once the buffers on the way are full, for all
   * readers of it and in its log. An end of the stream is noticed later.
   */
  pause(): void;
  resume(): void;
  close(): void;
  /** Settles once and never rejects. */
  readonly closed: Promise<StreamEnd>;
}

export interface StreamEnd {
  /** Cause of the end: the remote process, our close or abort, or the connection. */
  by: 'remote' | 'local' | 'connection';
  /** The Status the server sent on the error channel, if any: exit code and message. */
  exitCode?: number;
  message?: string;
}
