import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ApiStatus } from '../../core/kube/errors.ts';
import type { KubeApi, KubeObject, Stored } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';

/** Authenticated user of a request. */
export interface UserInfo {
  username: string;
  uid?: string;
  groups: string[];
  extra?: Record<string, string[]>;
}

/** A bearer token that is known from the start. The group `system:masters` may do everything. */
export interface TokenEntry {
  token: string;
  user: UserInfo;
}

export interface ApiServerOptions {
  /** Folder of objects, certificate and signing key between starts. Absent: in memory only. */
  dataDir?: string;
  /**
   * Handler of files in `dataDir` that no longer belong to this server, which answers no more writes and must be closed.
   */
  onStorageLost?(error: Error): void;
  /** Port; default: any free one. The server listens on 127.0.0.1 only. */
  port?: number;
  clock: Clock;
  random: Random;
  logger: Logger;
  tokens: TokenEntry[];
  /** Serves log, attach and exec of pods. Absent: these answer 503. */
  pods?: PodHandlers;
  /** Number of changes that a watch can go back before it is answered 410. */
  historyLength?: number;
  /** Interval of bookmarks for a watch that allows them; milliseconds. */
  bookmarkIntervalMs?: number;
}

/** Fields of a pod that the API server itself reads. */
export type PodObject = Stored<
  KubeObject & {
    spec: { nodeName?: string; containers: { name: string }[]; initContainers?: { name: string }[] };
    status?: { phase?: string };
  }
>;

/**
 * Handlers of the process that runs the pods. They get authenticated and authorized requests for existing pods. An
 * `ApiError` thrown before anything was sent becomes the answer.
 */
export interface PodHandlers {
  /** Answers `GET …/log`; `signal` aborts when the client has gone or the server closes. */
  log(pod: PodObject, query: URLSearchParams, res: ServerResponse, signal: AbortSignal): void | Promise<void>;
  /** Takes over the connection of a WebSocket upgrade of attach or exec. */
  stream(
    kind: 'attach' | 'exec',
    pod: PodObject,
    query: URLSearchParams,
    upgrade: { req: IncomingMessage; socket: Duplex; head: Buffer },
  ): void;
}

/**
 * The API without HTTP and authorization, for the kubelet in the same process. Validation, defaults and versions are
 * those of every other client. Objects are frozen and shared: copy one before changing it.
 */
export type Store = Pick<KubeApi, 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete' | 'watch'>;

/** Facts of a request that a fault can match. */
export interface RequestFacts {
  method: string;
  /** Path without query. */
  path: string;
  verb: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  user: string;
}

/** Misbehaviour on demand, for tests. Affects HTTP clients only. */
export interface Faults {
  /** Delay of every answer, milliseconds. */
  delayMs: number;
  /** Ends every watch connection abruptly. */
  dropWatches(): void;
  /** Makes watches deliver nothing, as on a silent connection, until called with false. */
  stallWatches(stalled: boolean): void;
  /** Delays the execution of the next requests that match, milliseconds. */
  delayNext(match: (request: RequestFacts) => boolean, ms: number, times?: number): void;
  /** Answers the next `times` (default 1) requests that match with this Status; nothing is executed. */
  failNext(match: (request: RequestFacts) => boolean, status: ApiStatus, times?: number): void;
  /** Executes the next `times` (default 1) requests that match and then drops the connection without an answer. */
  loseAnswer(match: (request: RequestFacts) => boolean, times?: number): void;
  /** Drops the history: earlier watches and continued lists are answered 410. */
  compact(): void;
}

/** JSON form of a kubeconfig file, as `kubeconfig` returns it. */
export interface Kubeconfig {
  apiVersion: 'v1';
  kind: 'Config';
  'current-context': string;
  clusters: { name: string; cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { name: string; user: { token: string } }[];
  contexts: { name: string; context: { cluster: string; user: string; namespace: string } }[];
}

export interface ApiServer {
  /** `https://127.0.0.1:<port>` */
  url: string;
  port: number;
  /** Certificate that clients must trust, PEM. */
  ca: string;
  store: Store;
  /** Returns a new token for this user, valid as long as the server runs. */
  mintToken(user: UserInfo): string;
  /** Refuses the token from now on and cuts its connections. Resolves once no request made with it is under way. */
  revokeToken(token: string): Promise<void>;
  /**
   * Returns a new token of a service account, as `kubectl create token` does; it is valid after a restart, too. Throws NotFound
   * without the account.
   */
  accountToken(account: { namespace: string; name: string }, options: { audience: string; seconds: number }): string;
  kubeconfig(token: string): Kubeconfig;
  faults: Faults;
  /** Ends all connections and completes pending writes. */
  close(): Promise<void>;
}
