/** How a route is described: the server, the checks and the OpenAPI document all come from the same description. */
import type * as z from 'zod';
import type { KubeApi } from '../core/kube/types.ts';
import type { Clock, Random } from '../core/runtime.ts';
import type { Access, Caller, Right } from './auth/access.ts';
import type { Waits } from './waits.ts';

/** What handlers work with. */
export interface Services {
  api: KubeApi;
  access: Access;
  waits: Waits;
  clock: Clock;
  random: Random;
}

/** One request, checked: the caller has the route's rights, everything fits the route's schemas. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  caller: Caller;
  params: P;
  query: Q;
  body: B;
  /** The Idempotency-Key, where the route takes one and the client sent one. */
  key: string | undefined;
  /** The Last-Event-ID that the client sent. */
  lastEventId: string | undefined;
  /** Aborts when the client has gone or the server stops: for reads and waits, not for writes. */
  signal: AbortSignal;
}

export interface Answer {
  status: number;
  /** Sent as JSON; a string as plain text. */
  body?: unknown;
  /** Sent piece by piece instead, as fast as it is taken. Ends when the request's signal aborts. */
  stream?: AsyncIterable<string>;
  headers?: Record<string, string>;
}

export interface RouteInfo {
  method: 'GET' | 'POST' | 'DELETE';
  /** With parameters as `{name}`. */
  path: string;
  operationId: string;
  summary: string;
  description?: string;
  /** What the caller must be allowed; the name is the value of this parameter. */
  rights: { verb: Right['verb']; resource: Right['resource']; nameParam?: string }[];
  params: z.ZodObject;
  query: z.ZodObject;
  body?: z.ZodType;
  /** Whether it takes an Idempotency-Key. */
  creates?: true;
  /** Answers other than problems, by status. `Text` is text/plain. */
  responses: Record<number, { description: string; schema?: z.ZodType | 'Text' | 'Events' }>;
}

export interface Route extends RouteInfo {
  handle(call: Call, services: Services): Promise<Answer>;
}

/** A route whose handler sees the types of its schemas. */
export function route<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodType>(
  description: RouteInfo & {
    params: P;
    query: Q;
    body?: B;
    handle(call: Call<z.output<P>, z.output<Q>, z.output<B>>, services: Services): Promise<Answer>;
  },
): Route {
  return description as unknown as Route;
}
