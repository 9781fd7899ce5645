import { defined } from '../defined.ts';
import { parseExact } from '../json.ts';
import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import type { Connection } from './connection.ts';
import { ApiError, TransportError } from './errors.ts';
import { apiVersionOf, collectionPath, objectPath, type Query, queryString } from './paths.ts';
import { pods } from './resources.ts';
import { held, mayRetry, retryWaitMs } from './retry.ts';
import type { AnswerTime } from './server-clock.ts';
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
  /** Name for the header User-Agent and, without its version, for the field manager. */
  userAgent: string;
  /** Limit of a call, retries included, when the caller gives none; milliseconds, default 15 s. */
  deadlineMs?: number;
  /** Maximum concurrent requests, default 32; further ones wait. Watches, log follows and attaches do not count. */
  maxConnections?: number;
  /** Handler of the time of each answer, for a `ServerClock`. */
  onAnswer?: (time: AnswerTime) => void;
  /**
   * Handler of the outcome of every request: the HTTP status, or `error` without an answer, with the error. A retry is
   * another request. A request that its caller aborted is not reported.
   */
  onRequest?: (verb: RequestVerb, code: string, error?: unknown) => void;
}

export type RequestVerb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'log'
  | 'attach'
  | 'exec';

export interface RawOptions extends CallOptions {
  query?: Query;
  body?: object;
  contentType?: string;
  accept?: string;
  /** True for a POST that changes nothing, so that it may be repeated. GET and HEAD may always be repeated. */
  readOnly?: boolean;
  /** Verb in the request metrics; default: derived from the method. */
  verb?: RequestVerb;
  /** Number handling of the answer: see `Resource`. */
  exactNumbers?: boolean | undefined;
}

const DEFAULT_DEADLINE_MS = 15_000;
const ERROR_BODY_BYTES = 64 * 1024;

const VERBS: Readonly<Record<string, RequestVerb>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

const PATCH_CONTENT_TYPE: Record<PatchType, string> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** API groups of reviews: creating a review asks a question and stores nothing. */
const REVIEW_GROUPS = new Set(['authentication.k8s.io', 'authorization.k8s.io']);

/** Client of the Kubernetes API over one connection pool. `KubeApi` documents the rejections of each method. */
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

  /** Returns a client of the same server with connections of its own: the requests of this one do not hold it up. */
  apart(maxConnections: number): KubeClient {
    return new KubeClient({ ...this.#options, maxConnections });
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<Stored<T>> {
    return this.#json('GET', objectPath(resource, ref), options, { exactNumbers: resource.exactNumbers });
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion } = options;
    const query = { labelSelector, fieldSelector, limit, continue: options.continue, resourceVersion };
    const accept = options.metadataOnly ? METADATA_LIST : undefined;
    const path = collectionPath(resource, namespace);
    const list = await this.#json<KubeList<T>>('GET', path, options, {
      query,
      verb: 'list',
      exactNumbers: resource.exactNumbers,
      ...(accept && { accept }),
    });
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
      exactNumbers: resource.exactNumbers,
    });
  }

  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<Stored<T>> {
    const path = objectPath(resource, object.metadata, options.subresource);
    return this.#json('PUT', path, options, {
      query: this.#writeQuery(options),
      body: typed(resource, object),
      exactNumbers: resource.exactNumbers,
    });
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
      exactNumbers: resource.exactNumbers,
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
    const { namespace, labelSelector, fieldSelector, resourceVersion, timeoutSeconds, accept, signal } = options;
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
    };
    const path = collectionPath(resource, namespace) + queryString(query);
    const { body } = await this.#stream('watch', path, { signal, accept });
    yield* decodeWatch<T>(body, resource.exactNumbers);
  }

  async *podLog(ref: ObjectRef, options: Parameters<KubeApi['podLog']>[1]): AsyncGenerator<Buffer> {
    const { container, follow, previous, sinceTime, tailLines, limitBytes, timestamps, signal } = options;
    const query = { container, follow, previous, sinceTime, tailLines, limitBytes, timestamps };
    // No limit for a follow: a silent container sends no headers before its first byte.
    const limitMs = follow ? undefined : (this.#options.deadlineMs ?? DEFAULT_DEADLINE_MS);
    const path = objectPath(pods, ref, 'log') + queryString(query);
    const { status, body } = await this.#stream('log', path, { signal, limitMs });
    if (status === 204) {
      // The API server has no other answer for a pod without a node. Once the pod has a node, the kubelet refuses in
      // these words.
      const message = `container "${container}" in pod "${ref.name}" is waiting to start: the pod has no node yet`;
      throw new ApiError({ code: 400, reason: 'BadRequest', message });
    }
    yield* body;
  }

  attach(ref: ObjectRef, options: AttachOptions): Promise<PodStream> {
    return this.#podStream(ref, 'attach', options);
  }

  exec(ref: ObjectRef, options: AttachOptions & { command: string[] }): Promise<PodStream> {
    return this.#podStream(ref, 'exec', options);
  }

  /**
   * Requests any other path: discovery, /version, /healthz. Resolves with the parsed JSON, or with the text of anything
   * else.
   */
  async raw(method: string, path: string, options: RawOptions = {}): Promise<unknown> {
    return this.#json(method, path, options, options);
  }

  /** Closes every connection, watches included. The client cannot be used afterwards. */
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
      const sentAt = clock.monotonic();
      const left = end - sentAt;
      let error: unknown;
      try {
        call.signal?.throwIfAborted();
        // A caller's deadline is sent to the server too: the write must not happen after the caller has given up.
        const timeout = !readOnly && call.deadlineMs !== undefined ? `${Math.max(1, Math.floor(left))}ms` : undefined;
        const sent = this.#transport.fetch({
          method,
          path: path + queryString({ ...request.query, timeout }),
          headers: {
            ...(await connection.headers()),
            'user-agent': this.#options.userAgent,
            accept: request.accept ?? 'application/json',
            ...(body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
          },
          ...defined({ body }),
          signal: call.signal,
          timeoutMs: left,
        });
        const verb = request.verb ?? VERBS[method] ?? 'get';
        const answer = await this.#counted(verb, call.signal, sent, ({ status }) => status);
        const { date } = answer.headers;
        this.#options.onAnswer?.({ date: String(date ?? ''), sentAt, receivedAt: clock.monotonic() });
        return parse(answer, `${method} ${path}`, request.exactNumbers) as R;
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

  /** Opens a streamed answer, once. `limitMs` limits each wait for more of it; endless streams have no limit. */
  async #stream(
    verb: RequestVerb,
    path: string,
    {
      signal,
      limitMs,
      accept = '*/*',
    }: { signal?: AbortSignal | undefined; limitMs?: number | undefined; accept?: string | undefined },
  ): Promise<Answer<AsyncIterable<Buffer>>> {
    const opening = this.#transport.stream({
      method: 'GET',
      path,
      headers: { ...(await this.#options.connection.headers()), 'user-agent': this.#options.userAgent, accept },
      signal,
      ...(limitMs === undefined ? {} : { timeoutMs: limitMs, idleTimeoutMs: limitMs }),
    });
    const answer = await this.#counted(verb, signal, opening, ({ status }) => status);
    if (answer.status < 300) return answer;
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
    const { connection, clock, log, userAgent } = this.#options;
    const opening = openPodStream(objectPath(pods, ref, subresource), options, { connection, clock, log, userAgent });
    return this.#counted(subresource, options.signal, opening, () => 101);
  }

  async #counted<R>(
    verb: RequestVerb,
    signal: AbortSignal | undefined,
    request: Promise<R>,
    statusOf: (answer: R) => number,
  ): Promise<R> {
    const { onRequest } = this.#options;
    if (!onRequest) return request;
    try {
      const answer = await request;
      onRequest(verb, String(statusOf(answer)));
      return answer;
    } catch (error) {
      if (!signal?.aborted) onRequest(verb, error instanceof ApiError ? String(error.code) : 'error', error);
      throw error;
    }
  }
}

/** Returns the body to send: the server requires apiVersion and kind. */
function typed<T extends KubeObject>(resource: Resource<T>, object: T): T {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

function namespaceOf(resource: Resource, object: KubeObject): string {
  const { namespace } = object.metadata;
  if (!namespace) throw new TypeError(`${resource.kind} ${object.metadata.name} cannot be created without a namespace`);
  return namespace;
}

function parse(answer: Answer<Buffer>, what: string, exactNumbers = false): unknown {
  if (answer.status < 200 || answer.status > 299) throw apiError(answer, what);
  const text = answer.body.toString('utf8');
  if (!String(answer.headers['content-type'] ?? '').includes('json')) return text;
  try {
    return exactNumbers ? parseExact(text) : JSON.parse(text);
  } catch (error) {
    throw new TransportError(`${what}: the answer is no JSON`, { cause: error });
  }
}

/** Converts an answer other than 2xx to an error. */
function apiError(answer: Answer<Buffer>, what: string): ApiError {
  let body: unknown = answer.body.toString('utf8');
  try {
    body = JSON.parse(body as string);
  } catch {
    // A proxy or a kubelet answers with plain text.
  }
  const status = toStatus(body, answer.status, what.replace(/\?.*/s, ''));
  const header = Number(answer.headers['retry-after']);
  const seconds = Number.isFinite(header) ? header : status.details?.retryAfterSeconds;
  return new ApiError(status, seconds === undefined ? undefined : seconds * 1000);
}
