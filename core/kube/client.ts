import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import type { Connection } from './config.ts';
import { ApiError, TransportError } from './errors.ts';
import { apiVersionOf, collectionPath, objectPath, type Query, queryString } from './paths.ts';
import { pods } from './resources.ts';
import { mayRetry, retryWaitMs } from './retry.ts';
import { toStatus } from './status.ts';
import { type Answer, Transport } from './transport.ts';
import type {
  AttachOptions,
  CallOptions,
  DeleteOptions,
  KubeApi,
  KubeList,
  KubeObject,
  ListOptions,
  ObjectRef,
  PatchType,
  PodStream,
  Resource,
  Stored,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './types.ts';
import { decodeWatch } from './watch.ts';

export interface KubeClientOptions {
  connection: Connection;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Sent as User-Agent and, without its version, as field manager. */
  userAgent: string;
  /** Limit of a call, retries included, when the caller names none; milliseconds, default 15 s. */
  deadlineMs?: number;
  /** Requests under way at once, default 32; further ones wait. Watches, log follows and attaches do not count. */
  maxConnections?: number;
}

export interface RawOptions extends CallOptions {
  query?: Query;
  body?: object;
  contentType?: string;
  accept?: string;
  /** True for a POST that changes nothing, so that it may be repeated. GET and HEAD always are. */
  readOnly?: boolean;
}

const DEFAULT_DEADLINE_MS = 15_000;
const ERROR_BODY_BYTES = 64 * 1024;

const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const PATCH_CONTENT_TYPE: Record<PatchType, string> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** Creating one of these asks a question and stores nothing. */
const REVIEW_GROUPS = new Set(['authentication.k8s.io', 'authorization.k8s.io']);

/** The Kubernetes API over one connection pool. See `KubeApi` for what each method rejects with. */
export class KubeClient implements KubeApi {
  readonly #transport: Transport;
  readonly #options: KubeClientOptions;
  readonly #fieldManager: string;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#fieldManager = options.userAgent.replace(/\/.*$/, '');
    this.#transport = new Transport(options.connection, {
      clock: options.clock,
      maxConnections: options.maxConnections ?? 32,
    });
  }

  /** The namespace to use when none is named. */
  get namespace(): string {
    return this.#options.connection.namespace;
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<Stored<T>> {
    return this.#json('GET', objectPath(resource, ref), options);
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion } = options;
    const query = { labelSelector, fieldSelector, limit, continue: options.continue, resourceVersion };
    const accept = options.metadataOnly ? METADATA_LIST : undefined;
    const path = collectionPath(resource, namespace);
    const list = await this.#json<KubeList<T>>('GET', path, options, { query, ...(accept && { accept }) });
    // A real API server writes an empty list of metadata as null.
    return list.items ? list : { ...list, items: [] };
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<Stored<T>> {
    const path = resource.namespaced
      ? collectionPath(resource, namespaceOf(resource, object))
      : collectionPath(resource);
    return this.#json('POST', path, options, {
      query: this.#writeQuery(options),
      body: typed(resource, object),
      readOnly: REVIEW_GROUPS.has(resource.group),
    });
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const path = objectPath(resource, object.metadata, options.subresource);
    return this.#json('PUT', path, options, { query: this.#writeQuery(options), body: typed(resource, object) });
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: object,
    options: WriteOptions & { type?: PatchType } = {},
  ): Promise<Stored<T>> {
    const type = options.type ?? 'merge';
    return this.#json('PATCH', objectPath(resource, ref, options.subresource), options, {
      query: { ...this.#writeQuery(options), force: type === 'apply' ? true : undefined },
      body: patch,
      contentType: PATCH_CONTENT_TYPE[type],
    });
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<void> {
    const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = options;
    const preconditions = uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion };
    await this.#json('DELETE', objectPath(resource, ref), options, {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions, gracePeriodSeconds, propagationPolicy },
    });
  }

  async *watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncGenerator<WatchEvent<T>> {
    const { namespace, labelSelector, fieldSelector, resourceVersion, timeoutSeconds, signal } = options;
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
    };
    const path = collectionPath(resource, namespace) + queryString(query);
    const { body } = await this.#stream(path, { signal });
    yield* decodeWatch<T>(body);
  }

  async *podLog(ref: ObjectRef, options: Parameters<KubeApi['podLog']>[1]): AsyncGenerator<Buffer> {
    const { container, follow, previous, sinceTime, tailLines, limitBytes, signal } = options;
    const query = { container, follow, previous, sinceTime, tailLines, limitBytes };
    // A follow of a silent container gets no headers before its first byte.
    const timeoutMs = follow ? undefined : (this.#options.deadlineMs ?? DEFAULT_DEADLINE_MS);
    const { body } = await this.#stream(objectPath(pods, ref, 'log') + queryString(query), { signal, timeoutMs });
    yield* body;
  }

  attach(ref: ObjectRef, options: AttachOptions): Promise<PodStream> {
    return this.#podStream(ref, 'attach', options);
  }

  exec(ref: ObjectRef, options: AttachOptions & { command: string[] }): Promise<PodStream> {
    return this.#podStream(ref, 'exec', options);
  }

  /** Any other path: discovery, /version, /healthz. Resolves with the parsed JSON, or the text of anything else. */
  async raw(method: string, path: string, options: RawOptions = {}): Promise<unknown> {
    return this.#json(method, path, options, options);
  }

  /** Ends every connection, watches included. The client cannot be used afterwards. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  #writeQuery(options: WriteOptions): Query {
    return { fieldManager: options.fieldManager ?? this.#fieldManager };
  }

  async #json<R>(method: string, path: string, call: CallOptions, request: RawOptions = {}): Promise<R> {
    const { clock, random, log, connection } = this.#options;
    const readOnly = method === 'GET' || method === 'HEAD' || request.readOnly === true;
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const deadlineMs = call.deadlineMs ?? this.#options.deadlineMs ?? DEFAULT_DEADLINE_MS;
    const end = clock.monotonic() + deadlineMs;

    for (let failures = 1; ; failures++) {
      const left = end - clock.monotonic();
      let error: unknown;
      try {
        call.signal?.throwIfAborted();
        // A caller's deadline binds the server too: nothing may happen on its behalf once it has given up.
        const timeout = !readOnly && call.deadlineMs !== undefined ? `${Math.max(1, Math.floor(left))}ms` : undefined;
        const answer = await this.#transport.fetch({
          method,
          path: path + queryString({ ...request.query, timeout }),
          headers: {
            ...(await connection.headers()),
            'user-agent': this.#options.userAgent,
            accept: request.accept ?? 'application/json',
            ...(body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
          },
          ...(body === undefined ? {} : { body }),
          signal: call.signal,
          timeoutMs: left,
        });
        return parse(answer, `${method} ${path}`) as R;
      } catch (caught) {
        error = caught;
      }
      if (call.retry === false || !mayRetry(error, readOnly)) throw error;
      const waitMs = retryWaitMs(error, failures, random);
      if (clock.monotonic() + waitMs >= end) throw error;
      log.debug(
        { method, path, failures, waitMs: Math.round(waitMs), err: (error as Error).message },
        'call is tried again',
      );
      await held(delay(clock, waitMs, call.signal));
    }
  }

  /** Opens an endless answer once: who follows it has to cope with its end in any case. */
  async #stream(
    path: string,
    options: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
  ): Promise<Answer<AsyncIterable<Buffer>>> {
    const answer = await this.#transport.stream({
      method: 'GET',
      path,
      headers: { ...(await this.#options.connection.headers()), 'user-agent': this.#options.userAgent, accept: '*/*' },
      signal: options.signal,
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    });
    if (answer.status === 200) return answer;
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer.body) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > ERROR_BODY_BYTES) break;
    }
    throw apiError({ ...answer, body: Buffer.concat(chunks) }, `GET ${path}`);
  }

  async #podStream(
    ref: ObjectRef,
    subresource: 'attach' | 'exec',
    options: AttachOptions & { command?: string[] },
  ): Promise<PodStream> {
    // Imported at first use: ws costs 3 MB, and most commands of the CLI never attach.
    const { openPodStream } = await import('./stream.ts');
    return openPodStream(objectPath(pods, ref, subresource), options, {
      connection: this.#options.connection,
      clock: this.#options.clock,
      log: this.#options.log,
      userAgent: this.#options.userAgent,
    });
  }
}

/** A call that waits for its next try has no socket: without this a program with nothing else to do would just end. */
async function held(wait: Promise<void>): Promise<void> {
  const hold = setInterval(() => {}, 2 ** 30);
  await wait.finally(() => clearInterval(hold));
}

/** The body as sent: the server insists on apiVersion and kind. */
function typed<T extends KubeObject>(resource: Resource<T>, object: T): T {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

function namespaceOf(resource: Resource, object: KubeObject): string {
  const { namespace } = object.metadata;
  if (!namespace) throw new TypeError(`${resource.kind} ${object.metadata.name} cannot be created without a namespace`);
  return namespace;
}

function parse(answer: Answer<Buffer>, what: string): unknown {
  if (answer.status < 200 || answer.status > 299) throw apiError(answer, what);
  const text = answer.body.toString('utf8');
  if (!String(answer.headers['content-type'] ?? '').includes('json')) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TransportError(`${what}: the answer is no JSON`, { cause: error });
  }
}

/** The error that an answer other than 2xx stands for. */
export function apiError(answer: Answer<Buffer>, what: string): ApiError {
  let body: unknown = answer.body.toString('utf8');
  try {
    body = JSON.parse(body as string);
  } catch {
    // A proxy's or kubelet's plain text.
  }
  const status = toStatus(body, answer.status, what.replace(/\?.*/s, ''));
  const header = Number(answer.headers['retry-after']);
  const seconds = Number.isFinite(header) ? header : status.details?.retryAfterSeconds;
  return new ApiError(status, seconds === undefined ? undefined : seconds * 1000);
}
