import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { defined } from '../core/defined.ts';
import { asDoubles } from '../core/json.ts';
import type { KubeClient } from '../core/kube/client.ts';
import type { Clock, Logger, Random } from '../core/runtime.ts';
import { COMMON_HEADERS, send, sendProblem } from './answers/answer.ts';
import { Access, type Caller } from './auth/access.ts';
import { failingWhenAborted, renewConsent, untilAborted } from './auth/renewed.ts';
import type { ApiConfig } from './config.ts';
import { checkHead, httpServer, ParserErrors } from './http/http-server.ts';
import { Pages } from './http/pages.ts';
import { StalledClients } from './http/stalled-clients.ts';
import type { Pair } from './http/tls.ts';
import { asksForSocket, serveUpgrade, upgradeRequired } from './http/upgrades.ts';
import { type CallMemory, Limits } from './limits/limits.ts';
import { ApiMetrics } from './metrics.ts';
import { openApiDocument } from './openapi/openapi.ts';
import { idempotencyKey } from './openapi/schemas.ts';
import { invalid, toProblem } from './problems/errors.ts';
import { Problem } from './problems/problems.ts';
import { Readiness } from './readiness.ts';
import { acceptBytes, acceptJson, checkEncoding } from './requests/body.ts';
import type { Route, Services } from './route.ts';
import { routes as allRoutes } from './routes/index.ts';
import { SharedLogs } from './streams/shared-logs.ts';
import { Waits } from './streams/waits.ts';
import { WatchedNamespaces } from './streams/watched-namespaces.ts';

export interface ServerOptions {
  api: KubeClient;
  config: ApiConfig;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Metrics to use; default: the server's own. */
  metrics?: ApiMetrics;
  /** Certificate and key; the server speaks HTTP without. */
  pair?: Pair;
  /** Default: those of the OpenAPI document. */
  routes?: readonly Route[];
  /** Aborted some time before the server is closed: it serves, says that it is not ready, and ends each connection with its next answer. */
  leaving?: AbortSignal;
}

const BODY_LIMIT = 1024 * 1024;
/** Copies of a body in memory while its request is handled: the text, what was parsed, checked, and sent to the cluster. */
const BODY_COPIES = 4;
/** Newest lines of a session's pod that are kept for those who follow it, bytes. */
const LOG_BYTES = 1024 * 1024;
/** Status in the metrics for a client that left before its answer began, as proxies write it. */
const CLIENT_LEFT = 499;
/** Status of an answer that makes the connection a WebSocket. */
const SWITCHING = 101;
/** Time that requests may take once the server is being closed. */
const DRAIN_MS = 5_000;
/** Paths of the probes, which are answered until the end. */
const PROBES = ['/healthz', '/readyz'];

/**
 * Builds the server, not yet listening. Closing it answers waiting requests with the present state and then closes the
 * connections.
 */
export function buildServer(options: ServerOptions): FastifyInstance<Server> {
  const { api, config, clock, random, log, pair, metrics = new ApiMetrics(), routes = allRoutes, leaving } = options;
  const limits = new Limits({ clock, config, metrics });
  const access = new Access({ api, clock, audiences: config.BERTH_AUDIENCES, limits });
  const watched = new WatchedNamespaces({ api, clock, random, log });
  const logs = new SharedLogs({ clock, most: config.BERTH_API_MAX_STREAMS, bytes: LOG_BYTES });
  const services: Services = { api, access, clock, random, log, waits: new Waits(api, clock), watched, logs };
  const callers = new WeakMap<FastifyRequest, Caller>();
  const memories = new WeakMap<FastifyRequest, CallMemory>();
  let isStopping = false;
  let draining: NodeJS.Timeout | undefined;
  const underWay = new Set<AbortController>();
  const pages = new Pages();
  const parserErrors = new ParserErrors(pages, (code) => {
    metrics.answered({ method: '', route: '', code, seconds: 0 });
  });
  const stalled = new StalledClients({
    clock,
    limitMs: config.BERTH_API_STALL_TIMEOUT,
    onCut: ({ req }) => {
      metrics.stalledReader();
      log.info({ method: req.method, path: pages.shown(req.url ?? '') }, 'stalled reader disconnected');
    },
  });

  const begin = (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers({ 'x-request-id': request.id, ...COMMON_HEADERS });
    parserErrors.begin(reply);
    stalled.watch(reply.raw, () => {
      if (reply.sent) return void request.raw.socket.destroy();
      const text = `No byte of the body came for ${config.BERTH_API_STALL_TIMEOUT / 1000} s. Send it faster.`;
      sendProblem(reply, new Problem('RequestTimeout', text));
    });
    // A client that leaves closes the answer too, which is how a request that follows something ends.
    onceClosed(reply, () => {
      stalled.forget(reply.raw);
      const route = request.routeOptions.url?.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}') ?? '';
      const isAnswered = reply.raw.headersSent || reply.raw.statusCode === SWITCHING;
      const code = isAnswered ? reply.raw.statusCode : CLIENT_LEFT;
      metrics.answered({ method: request.method, route, code, seconds: reply.elapsedTime / 1000 });
    });
  };

  const app = Fastify<Server>({
    serverFactory: (handler) =>
      httpServer(handler, pair, (request) => asksForSocket(request) && pages.isSocket(request.url ?? '')),
    clientErrorHandler: (error, socket) => parserErrors.handle(error, socket),
    frameworkErrors: (error, request, reply) => {
      begin(request, reply);
      sendProblem(reply, toProblem(error));
    },
    bodyLimit: BODY_LIMIT,
    genReqId: () => randomUUID(),
    forceCloseConnections: 'idle',
    // Fastify's own refusal is no problem+json.
    return503OnClosing: false,
    // The limit is longer than any name that Kubernetes allows, so that the schemas report a name that is too long.
    routerOptions: { maxParamLength: 1024 },
    handlerTimeout: 0,
  });
  acceptJson(app);
  const sockets = new Set(routes.flatMap((route) => (route.isSocket ? [urlOf(route)] : [])));
  app.addHook('onRoute', ({ url, method }) => pages.add(url, [method].flat(), sockets.has(url)));
  app.addHook('onRequest', async (request, reply) => {
    begin(request, reply);
    if (isStopping && !PROBES.includes(request.url)) throw stopping();
    if (request.is404) throw pages.refusal(request.url);
    checkHead(request);
    checkEncoding(request);
  });
  // A client sends its next request over a new connection, which leads to a server that stays. An upgrade is not sent and has no such header.
  app.addHook('onSend', async (_, reply) => {
    if (leaving?.aborted) reply.header('connection', 'close');
  });
  const logAnswer = (request: FastifyRequest, reply: FastifyReply) => {
    const facts = { method: request.method, path: pages.shown(request.url), status: reply.raw.statusCode };
    const user = callers.get(request)?.username;
    log.info({ ...facts, user, ms: Math.round(reply.elapsedTime), requestId: request.id }, 'request answered');
  };
  app.addHook('onResponse', async (request, reply) => logAnswer(request, reply));
  app.addHook('preClose', async () => {
    isStopping = true;
    for (const request of underWay) request.abort(stopping());
    // A connection that has not sent anything yet counts as busy in Node, for a minute.
    const limit = clock.monotonic() + DRAIN_MS;
    draining = setInterval(() => {
      if (underWay.size === 0 || clock.monotonic() > limit) app.server.closeAllConnections();
    }, 20);
  });
  app.addHook('onClose', async () => {
    clearInterval(draining);
    stalled.stop();
    await Promise.all([watched.stop(), logs.stop()]);
  });
  app.setErrorHandler((error, request, reply) => {
    const problem = toProblem(error);
    if (problem.code === 'Internal' && !reply.raw.destroyed)
      log.error({ err: error, requestId: request.id }, 'request failed');
    return sendProblem(reply, problem);
  });

  const readiness = new Readiness(api, clock, () => isStopping || leaving?.aborted === true);
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

  /** Authenticates the caller, whose request counts for its limits from then on. */
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    const caller = await access.authenticate(request.headers.authorization);
    callers.set(request, caller);
    onceClosed(reply, await limits.request(caller.username));
    return caller;
  };
  const authorize = async (caller: Caller, { rights }: Route, params: Record<string, string>) => {
    const namespace = params.namespace as string;
    for (const { verb, resource, subresource, nameParam } of rights) {
      const name = nameParam === undefined ? undefined : params[nameParam];
      await access.authorize(caller, { verb, resource, namespace, ...defined({ subresource, name }) });
    }
  };
  app.route({
    method: 'GET',
    url: '/metrics',
    // A right on the path is checked, as Kubernetes' own programs do, and no right on the objects behind the metrics.
    onRequest: async (request, reply) => access.authorizePath(await admit(request, reply), '/metrics'),
    handler: async (_, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  });
  const add = (scope: FastifyInstance<Server>, route: Route) => {
    scope.route({
      method: route.method,
      exposeHeadRoute: !routes.some(({ method, path }) => method === 'HEAD' && path === route.path),
      url: urlOf(route),
      // Rights are checked before the body is read, so that a caller without rights cannot send one.
      onRequest: async (request, reply) => {
        const caller = await admit(request, reply);
        const params = checked('InvalidParameter', route.params, paramsOf(request)) as Record<string, string>;
        await authorize(caller, route, params);
        checkServed(params.namespace as string, config.BERTH_NAMESPACES);
        if (route.isSocket && !asksForSocket(request.raw)) throw upgradeRequired();
        const memory = limits.memory(caller.username);
        onceClosed(reply, memory.free);
        memories.set(request, memory);
        if (route.body) memory.hold(BODY_COPIES * bodyBytes(request));
      },
      handler: async (request, reply) => {
        const caller = callers.get(request) as Caller;
        const ended = new AbortController();
        underWay.add(ended);
        onceClosed(reply, () => {
          underWay.delete(ended);
          ended.abort(new Error('the client has gone'));
        });
        if (!route.body && !route.takesBytes) refuseBody(request.body);
        const call = {
          caller,
          requestId: request.id,
          params: checked('InvalidParameter', route.params, paramsOf(request)),
          query: checked('InvalidParameter', route.query, request.query),
          body: route.body && checked('Invalid', route.body, request.body),
          bytes: failingWhenAborted<Buffer>(request.raw, ended.signal),
          key: route.creates && keyOf(request),
          lastEventId: request.headers['last-event-id']?.toString(),
          headers: request.headers,
          memory: memories.get(request) as CallMemory,
          signal: ended.signal,
        };
        const hold = route.holds?.(call);
        if (hold) onceClosed(reply, limits.hold(hold, caller.username));
        const ask = async () => {
          const present = await access.authenticate(request.headers.authorization);
          await authorize(present, route, call.params as Record<string, string>);
        };
        const refuse = () => ended.abort(new Problem('Forbidden', 'The right to this was withdrawn.'));
        const renew = () => onceClosed(reply, renewConsent(clock, ask, refuse));
        if (route.takesBytes || route.isSocket) renew();
        const answer = await route.handle(call, services);
        const { stream, content, serve } = answer;
        if (serve) {
          reply.hijack();
          await serveUpgrade(request.raw, serve, {
            clock,
            signal: ended.signal,
            headers: reply.getHeaders() as OutgoingHttpHeaders,
            onOpen: () => logAnswer(request, reply),
            onFault: (err) => log.error({ err, requestId: request.id }, 'request failed'),
          });
          return reply;
        }
        if (!stream && !content) return send(reply, answer);
        if (!route.takesBytes) renew();
        return send(reply, {
          ...answer,
          ...defined({
            stream: stream && untilAborted(stream, ended.signal),
            content: content && failingWhenAborted(content, ended.signal),
          }),
        });
      },
    });
  };
  for (const route of routes) if (!route.takesBytes) add(app, route);
  void app.register(async (scope: FastifyInstance<Server>) => {
    acceptBytes(scope);
    for (const route of routes) if (route.takesBytes) add(scope, route);
  });
  return app;
}

/** Bytes that the body of a request can have, before it is read. */
function bodyBytes({ headers }: FastifyRequest): number {
  const length = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : BODY_LIMIT));
  return Math.min(BODY_LIMIT, length || 0);
}

/** What is to be called once an answer is over. Node warns of an emitter with more than ten listeners. */
const atEnd = new WeakMap<ServerResponse, (() => void)[]>();

/** Calls `fn` once the answer is over: sent, or its client has gone. */
function onceClosed({ raw }: { raw: ServerResponse }, fn: () => void): void {
  const known = atEnd.get(raw);
  if (raw.closed) {
    fn();
  } else if (known) {
    known.push(fn);
  } else {
    const calls = [fn];
    atEnd.set(raw, calls);
    raw.once('close', () => {
      for (const call of calls) call();
    });
  }
}

const urlOf = ({ path }: Route) => path.replace(/\{path\}$/, '*').replaceAll(/\{(\w+)\}/g, ':$1');

/** Parameters of the path by their names in the route. */
function paramsOf({ params }: FastifyRequest): Record<string, string> {
  const { '*': path, ...others } = params as Record<string, string>;
  return { ...others, ...defined({ path }) };
}

const stopping = () => new Problem('ShuttingDown', 'The server is being stopped. Try again.', { retryAfterSeconds: 1 });

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

/** Refuses a body where none is read: a precondition in it, as Kubernetes has it, would not be heard. */
function refuseBody(body: unknown): void {
  if (body === undefined || body === null || (typeof body === 'object' && Object.keys(body).length === 0)) return;
  throw new Problem('Invalid', 'The request takes no body. A precondition on the UID is the parameter uid: ?uid=….');
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
