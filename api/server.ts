import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { asDoubles } from '../core/json.ts';
import type { KubeClient } from '../core/kube/client.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import { Access, type Caller } from './auth/access.ts';
import type { ApiConfig } from './config.ts';
import { invalid, toProblem } from './errors.ts';
import { parseJson } from './json.ts';
import { ApiMetrics } from './metrics.ts';
import { openApiDocument } from './openapi.ts';
import { Problem } from './problems.ts';
import { Readiness } from './readiness.ts';
import type { Answer, Route, Services } from './route.ts';
import { routes } from './routes/index.ts';
import { idempotencyKey } from './schemas.ts';
import { Waits } from './waits.ts';

export interface ServerOptions {
  api: KubeClient;
  config: ApiConfig;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Metrics to use; default: the server's own. */
  metrics?: ApiMetrics;
}

const BODY_LIMIT = 1024 * 1024;
/** Status in the metrics for a client that left before its answer began, as proxies write it. */
const CLIENT_LEFT = 499;
/** Time that requests may take once the server is being closed. */
const DRAIN_MS = 5_000;

/**
 * Builds the server, not yet listening. Closing it answers waiting requests with the present state and then closes the
 * connections.
 */
export function buildServer(options: ServerOptions): FastifyInstance {
  const { api, config, clock, random, log, metrics = new ApiMetrics() } = options;
  const access = new Access({ api, clock, audiences: config.BERTH_AUDIENCES });
  const services: Services = { api, access, clock, random, waits: new Waits(api, clock, config.BERTH_API_MAX_WAITS) };
  let isStopping = false;
  let draining: NodeJS.Timeout | undefined;
  const underWay = new Set<AbortController>();

  const app = Fastify({
    bodyLimit: BODY_LIMIT,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // The limit is longer than any name that Kubernetes allows, so that the schemas report a name that is too long.
    routerOptions: { maxParamLength: 1024 },
    // The limits free the connection of a client that sends its headers or body too slowly.
    requestTimeout: 30_000,
    handlerTimeout: 0,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    try {
      checkCharset(request.headers['content-type']);
      done(null, parseJson(body as string));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addHook('onSend', async (request, reply) => {
    reply
      .header('x-request-id', request.id)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff');
  });
  app.addHook('onRequest', async (request, reply) => {
    // The event also comes for a client that leaves first, which is how a client that follows something ends.
    reply.raw.once('close', () => {
      const route = request.routeOptions.url?.replaceAll(/:(\w+)/g, '{$1}') ?? '';
      const code = reply.raw.headersSent ? reply.raw.statusCode : CLIENT_LEFT;
      metrics.answered({ method: request.method, route, code, seconds: reply.elapsedTime / 1000 });
    });
  });
  app.addHook('onResponse', async (request, reply) => {
    const facts = { method: request.method, path: request.url.split('?')[0], status: reply.statusCode };
    const user = callers.get(request)?.username;
    log.info({ ...facts, user, ms: Math.round(reply.elapsedTime), requestId: request.id }, 'request answered');
  });
  app.addHook('preClose', async () => {
    isStopping = true;
    const reason = new Problem('ShuttingDown', 'The server is being stopped. Try again.');
    for (const request of underWay) request.abort(reason);
    // A connection that has not sent anything yet counts as busy in Node, for a minute.
    const limit = clock.monotonic() + DRAIN_MS;
    draining = setInterval(() => {
      if (underWay.size === 0 || clock.monotonic() > limit) app.server.closeAllConnections();
    }, 20);
  });
  app.addHook('onClose', async () => clearInterval(draining));
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error);
    if (problem.code === 'Internal' && !reply.raw.destroyed)
      log.error({ err: error, requestId: request.id }, 'request failed');
    return sendProblem(reply, problem);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0];
    const methods = routes.filter((route) => pattern(route).test(path as string)).map(({ method }) => method);
    if (methods.length === 0) {
      return sendProblem(reply, new Problem('NotFound', `There is no page ${path}. GET /openapi.json lists them.`));
    }
    reply.header('allow', methods.join(', '));
    return sendProblem(reply, new Problem('MethodNotAllowed', `${path} takes ${methods.join(' and ')}.`));
  });

  const readiness = new Readiness(api, clock, () => isStopping);
  app.get('/healthz', async (_, reply) => reply.type('text/plain').send('ok\n'));
  app.get('/readyz', async (_, reply) => {
    const problem = await readiness.problem();
    return reply
      .code(problem ? 503 : 200)
      .type('text/plain')
      .send(`${problem ?? 'ok'}\n`);
  });
  const document = JSON.stringify(openApiDocument());
  app.get('/openapi.json', async (_, reply) => reply.type('application/json').send(document));

  const callers = new WeakMap<FastifyRequest, Caller>();
  const authenticate = async (request: FastifyRequest) => {
    const caller = await access.authenticate(request.headers.authorization);
    callers.set(request, caller);
    return caller;
  };
  app.route({
    method: 'GET',
    url: '/metrics',
    // A right on the path is checked, as Kubernetes' own programs do, and no right on the objects behind the metrics.
    onRequest: async (request) => access.authorizePath(await authenticate(request), '/metrics'),
    handler: async (_, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  });
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      // Rights are checked before the body is read, so that a caller without rights cannot send one.
      onRequest: async (request) => {
        const caller = await authenticate(request);
        const params = checked('InvalidParameter', route.params, request.params) as Record<string, string>;
        const namespace = params.namespace as string;
        for (const { verb, resource, nameParam } of route.rights) {
          const name = nameParam === undefined ? undefined : params[nameParam];
          await access.authorize(caller, { verb, resource, namespace, ...(name === undefined ? {} : { name }) });
        }
        checkServed(namespace, config.BERTH_NAMESPACES);
      },
      handler: async (request, reply) => {
        const ended = new AbortController();
        underWay.add(ended);
        reply.raw.once('close', () => {
          underWay.delete(ended);
          ended.abort(new Error('the client has gone'));
        });
        const answer = await route.handle(
          {
            caller: callers.get(request) as Caller,
            params: checked('InvalidParameter', route.params, request.params),
            query: checked('InvalidParameter', route.query, request.query),
            body: route.body && checked('Invalid', route.body, request.body),
            key: route.creates && keyOf(request),
            lastEventId: request.headers['last-event-id']?.toString(),
            signal: ended.signal,
          },
          services,
        );
        return send(reply, answer);
      },
    });
  }
  return app;
}

function checked(
  code: 'Invalid' | 'InvalidParameter',
  schema: Route['params'] | NonNullable<Route['body']>,
  value: unknown,
): unknown {
  // The value is checked with rounded numbers: a schema would take a RawNumber for an object, of labels for example.
  const rounded = schema.safeParse(asDoubles(value));
  if (!rounded.success) throw invalid(code, rounded.error);
  return schema.parse(value);
}

/** Refuses a body in another encoding than UTF-8 (RFC 8259), because it would be read wrongly. */
function checkCharset(contentType = ''): void {
  const [, charset] = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType) ?? [];
  if (charset === undefined || /^(utf-?8|us-ascii)$/i.test(charset)) return;
  const message = `has charset "${charset}"; send JSON in UTF-8, with Content-Type: application/json`;
  throw new Problem('UnsupportedMediaType', `Content-Type ${message}.`, {
    fields: [{ field: 'Content-Type', message }],
  });
}

function checkServed(namespace: string, served: readonly string[]): void {
  if (served.length === 0 || served.includes(namespace)) return;
  const text = `This installation does not serve namespace "${namespace}"; it serves ${served.join(', ')}.`;
  throw new Problem('NamespaceNotServed', text);
}

function keyOf(request: FastifyRequest): string | undefined {
  const value = request.headers['idempotency-key'];
  if (value === undefined) return undefined;
  const parsed = idempotencyKey.safeParse(value);
  if (parsed.success) return parsed.data;
  const message = parsed.error.issues[0]?.message ?? '';
  throw new Problem('InvalidParameter', `Idempotency-Key ${message}.`, {
    fields: [{ field: 'Idempotency-Key', message }],
  });
}

function send(reply: FastifyReply, { status, body, stream, headers }: Answer): FastifyReply {
  if (stream)
    return reply
      .code(status)
      .headers(headers ?? {})
      .send(Readable.from(stream));
  reply
    .code(status)
    .headers({ ...(body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }), ...headers });
  return reply.send(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  // The connection is closed: the rest of the body is not worth reading.
  if (!reply.request.raw.complete) reply.header('connection', 'close');
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer');
  if (problem.retryAfterSeconds !== undefined) reply.header('retry-after', String(problem.retryAfterSeconds));
  return reply.code(problem.status).type('application/problem+json').send(JSON.stringify(problem));
}

function pattern({ path }: Route): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
