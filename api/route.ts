/** Description of a route. The server, the checks and the OpenAPI document all come from it. */
import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { KubeApi } from '../core/kube/types.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import type { Access, Caller, Right } from './auth/access.ts';
import type { ClientSocket } from './http/client-socket.ts';
import type { CallMemory, Hold } from './limits/limits.ts';
import type { AnswerHeader } from './openapi/headers.ts';
import type { ProblemCode } from './problems/problems.ts';
import type { SharedLogs } from './streams/shared-logs.ts';
import type { Waits } from './streams/waits.ts';
import type { WatchedNamespaces } from './streams/watched-namespaces.ts';

/** Services for handlers. */
export interface Services {
  api: KubeApi;
  access: Access;
  waits: Waits;
  watched: WatchedNamespaces;
  logs: SharedLogs;
  clock: Clock;
  random: Random;
  log: Logger;
}

/** A checked request: the caller has the route's rights, and all parts fit the route's schemas. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  caller: Caller;
  /** The id of the request, as its answer has it. */
  requestId: string;
  params: P;
  query: Q;
  body: B;
  /** The body of a route with `takesBytes`, read as fast as the handler reads. Fails where the client leaves too early. */
  bytes: AsyncIterable<Buffer>;
  /** The client's Idempotency-Key, if the route takes one and the client sent one. */
  key: string | undefined;
  /** The client's Last-Event-ID. */
  lastEventId: string | undefined;
  /** All headers of the request, by their names in lower case. */
  headers: IncomingHttpHeaders;
  /** What the request may hold in memory until its answer has been sent, its body included. */
  memory: CallMemory;
  /** Aborts when the client has gone or the server stops; for reads and waits, not for writes. */
  signal: AbortSignal;
}

export interface Answer {
  status: number;
  /** Body, sent as JSON; a string is sent as plain text, a Buffer as it is. */
  body?: unknown;
  /** Text that goes on, sent in pieces as fast as the client reads. Ends when the request's signal aborts. */
  stream?: AsyncIterable<string>;
  /**
   * Bytes, sent as fast as the client reads. The connection is cut where they fail, where the request's signal aborts, and
   * where they are more or fewer than a header content-length says: a client never takes a part for the whole.
   */
  content?: AsyncIterable<Buffer>;
  /** Headers behind the content, whose values are known at its end. */
  trailers?: Record<string, () => string>;
  /**
   * Serves the client's WebSocket, in place of a body; the status is 101. The socket is closed when this settles, and before
   * that when the request's signal aborts. A rejection closes it with the problem's code and text.
   */
  serve?: (socket: ClientSocket) => Promise<void>;
  headers?: Record<string, string>;
}

/** Answers that are streams of events. */
export type EventStream = 'SessionEvents' | 'NamespaceEvents';

export interface ResponseInfo {
  description: string;
  /** `Text` is text/plain, `File` of any type. */
  schema?: z.ZodType | 'Text' | 'File' | EventStream;
  /** Contents of other types, by type; of several schemas the content has one. */
  also?: Record<string, readonly z.ZodType[] | 'File'>;
  headers?: readonly AnswerHeader[];
  /** Headers that come behind the content. */
  trailers?: readonly AnswerHeader[];
}

export interface RouteInfo {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Path with parameters as `{name}`. A parameter `{path}` at its end takes the slashes of what is left as well. */
  path: string;
  operationId: string;
  summary: string;
  description?: string;
  /** Rights that the caller needs; the object's name is the value of parameter `nameParam`. */
  rights: (Pick<Right, 'verb' | 'resource' | 'subresource'> & { nameParam?: string })[];
  params: z.ZodObject;
  query: z.ZodObject;
  body?: z.ZodType;
  /** True if the body is bytes of any type and length; the handler reads them. */
  takesBytes?: true;
  /** True if the page is a WebSocket. */
  isSocket?: true;
  /** True if the route takes an Idempotency-Key. */
  creates?: true;
  /** Headers that the route reads, for the document. */
  headers?: z.ZodObject;
  /** Answers other than problems, by status. */
  responses: Record<number, ResponseInfo>;
  /** Codes of the route's problems beside those that follow from the fields above: openapi/codes.ts. */
  codes?: readonly ProblemCode[];
}

export interface Route extends RouteInfo {
  /** Limit of long requests that this one counts for until its answer has been sent. */
  holds?(call: Pick<Call, 'query'>): Hold | undefined;
  handle(call: Call, services: Services): Promise<Answer>;
}

/** Defines a route whose handler sees the types of its schemas. */
export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType>(
  description: RouteInfo & {
    params: P;
    query: Q;
    body?: B;
    holds?(call: Pick<Call<unknown, z.output<Q>>, 'query'>): Hold | undefined;
    handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>, services: Services): Promise<Answer>;
  },
): Route {
  return description as unknown as Route;
}
