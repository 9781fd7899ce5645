import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Connection } from '../../core/kube/connection.ts';
import type { KubeObject, Stored } from '../../core/kube/types.ts';

export interface SeenRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Answers a request instead of the server; returns false to let the server do it. */
export type Intercept = (request: SeenRequest, response: ServerResponse) => boolean | Promise<boolean>;

interface Watcher {
  response: ServerResponse;
  path: string;
}

interface HistoryEvent {
  path: string;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  version: number;
  object: Stored;
}

/**
 * A real HTTP server that behaves like a Kubernetes API server in the points that the client layer relies on (versions,
 * list with pages, watch with history, conflicts), until it is told to misbehave. Objects of any resource are kept by
 * their path.
 */
export class KubeServer {
  readonly requests: SeenRequest[] = [];
  readonly objects = new Map<string, Stored>();
  version = 100;
  intercept: Intercept | undefined;
  /** Handles an attach or exec; without it the upgrade is refused with 404. */
  onStream: ((socket: WebSocket, request: SeenRequest) => void) | undefined;
  /** Answers an upgrade with this status and text instead of accepting it. */
  refuseUpgrade: { status: number; body: string } | undefined;
  readonly #server: Server;
  readonly #upgrades = new WebSocketServer({ noServer: true, handleProtocols: () => 'v5.channel.k8s.io' });
  readonly #sockets = new Set<Socket>();
  readonly #watchers = new Set<Watcher>();
  #history: HistoryEvent[] = [];
  #oldest = 0;
  #port = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => response.destroy(error));
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => {});
    });
    this.#server.on('upgrade', (request, socket, head) => {
      const seen = this.#seen(request, '');
      this.requests.push(seen);
      if (this.refuseUpgrade !== undefined || this.onStream === undefined) {
        const { status, body } = this.refuseUpgrade ?? { status: 404, body: 'no such container' };
        socket.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
        return;
      }
      this.#upgrades.handleUpgrade(request, socket, head, (ws) => this.onStream?.(ws, seen));
    });
  }

  get connection(): Connection {
    return {
      server: `http://127.0.0.1:${this.#port}`,
      tls: {},
      headers: () => ({ authorization: 'Bearer test-token' }),
      namespace: 'default',
    };
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Stops listening and cuts every connection; `start` listens on the same port again. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Puts an object at a collection's path (`/api/v1/namespaces/ns/pods`), as if another client had written it. */
  put(collection: string, object: KubeObject): Stored {
    const path = `${collection}/${object.metadata.name}`;
    const old = this.objects.get(path);
    const namespace = /\/namespaces\/([^/]+)\//.exec(`${collection}/`)?.[1];
    const stored: Stored = {
      ...object,
      metadata: {
        uid: `uid-${object.metadata.name}-${this.version + 1}`,
        creationTimestamp: '2030-01-01T00:00:00Z',
        ...(namespace === undefined ? {} : { namespace }),
        ...(old === undefined ? {} : { uid: old.metadata.uid }),
        ...object.metadata,
        resourceVersion: String(++this.version),
      },
    };
    this.objects.set(path, stored);
    this.#record({ path, type: old === undefined ? 'ADDED' : 'MODIFIED', version: this.version, object: stored });
    return stored;
  }

  remove(path: string): void {
    const old = this.objects.get(path);
    if (old === undefined) throw new Error(`nothing at ${path}`);
    this.objects.delete(path);
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(++this.version) } };
    this.#record({ path, type: 'DELETED', version: this.version, object });
  }

  bookmark(): void {
    for (const { response } of this.#watchers) {
      response.write(
        `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.version) } } })}\n`,
      );
    }
  }

  /** Sends bytes to every watcher as they are. */
  writeToWatchers(bytes: Buffer | string): void {
    for (const { response } of this.#watchers) response.write(bytes);
  }

  /** Ends every watch in order, as a server does after the time that the client asked for. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end();
    this.#watchers.clear();
  }

  /** Drops the history: an earlier watch gets 410. */
  expire(): void {
    this.#history = [];
    this.#oldest = this.version;
  }

  /** Becomes a server with other objects whose versions start anew, as after a restore. */
  reset(version: number): void {
    this.objects.clear();
    this.#history = [];
    this.version = version;
    this.#oldest = version;
  }

  #record(event: HistoryEvent): void {
    this.#history.push(event);
    for (const { response, path } of this.#watchers) if (inCollection(event.path, path)) writeEvent(response, event);
  }

  #seen(request: IncomingMessage, body: string): SeenRequest {
    const url = new URL(request.url ?? '/', 'http://server');
    return {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body,
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen = this.#seen(request, Buffer.concat(chunks).toString('utf8'));
    this.requests.push(seen);
    if (await this.intercept?.(seen, response)) return;
    if (seen.method === 'GET') this.#read(seen, response);
    else this.#write(seen, response);
  }

  #read({ path, query }: SeenRequest, response: ServerResponse): void {
    const object = this.objects.get(path);
    const single = /\/(api\/v1|apis\/[^/]+\/[^/]+)\/namespaces\/[^/]+\/[^/]+\/[^/]+$/.test(path);
    if (object !== undefined) answer(response, 200, object);
    else if (query.get('watch') === 'true') this.#watch(path, Number(query.get('resourceVersion')), response);
    else if (single) refuse(response, 404, 'NotFound', `${path} not found`);
    else this.#list(path, Number(query.get('limit') ?? 0), Number(query.get('continue') ?? 0), response);
  }

  #list(path: string, limit: number, from: number, response: ServerResponse): void {
    const all = [...this.objects].filter(([at]) => inCollection(at, path)).map(([, item]) => item);
    const end = from + (limit || all.length);
    const metadata = { resourceVersion: String(this.version), ...(end < all.length && { continue: String(end) }) };
    answer(response, 200, { metadata, items: all.slice(from, end) });
  }

  #watch(path: string, from: number, response: ServerResponse): void {
    if (from < this.#oldest) {
      refuse(response, 410, 'Expired', 'too old resource version');
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const event of this.#history) {
      if (event.version > from && inCollection(event.path, path)) writeEvent(response, event);
    }
    const watcher = { response, path };
    this.#watchers.add(watcher);
    response.on('close', () => this.#watchers.delete(watcher));
  }

  #write({ method, path, body }: SeenRequest, response: ServerResponse): void {
    const parsed = JSON.parse(body || '{}');
    const at = method === 'POST' ? `${path}/${parsed.metadata.name}` : path.replace(/\/(status|scale)$/, '');
    const collection = at.slice(0, at.lastIndexOf('/'));
    const old = this.objects.get(at);
    const expected = parsed.metadata?.resourceVersion;
    if (method === 'POST') {
      if (old !== undefined) refuse(response, 409, 'AlreadyExists', 'already exists');
      else answer(response, 201, this.put(collection, parsed));
    } else if (old === undefined) {
      refuse(response, 404, 'NotFound', `${path} not found`);
    } else if (method === 'DELETE') {
      this.remove(at);
      answer(response, 200, { status: 'Success' });
    } else if (expected !== undefined && expected !== old.metadata.resourceVersion) {
      refuse(response, 409, 'Conflict', 'the object has been modified');
    } else {
      const patched = { ...old, ...parsed, metadata: { ...old.metadata, ...parsed.metadata } };
      answer(response, 200, this.put(collection, method === 'PUT' ? parsed : patched));
    }
  }
}

function writeEvent(response: ServerResponse, { type, object }: HistoryEvent): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

/** True if the object at `path` is in the collection, of one namespace or of all. */
function inCollection(path: string, collection: string): boolean {
  const parent = path.slice(0, path.lastIndexOf('/'));
  return parent === collection || parent.replace(/\/namespaces\/[^/]+(?=\/)/, '') === collection;
}

export function answer(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** Answers with a Status. */
export function refuse(
  response: ServerResponse,
  code: number,
  reason: string,
  message: string,
  headers: Record<string, string> = {},
): void {
  answer(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }, headers);
}
