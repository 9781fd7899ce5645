import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { AdmissionPolicies } from './admission/policies.ts';
import { Authenticator } from './auth/authenticate.ts';
import { serverKeys } from './auth/keys.ts';
import { Rbac } from './auth/rbac.ts';
import { reviews as reviewsOf } from './auth/reviews.ts';
import { ServiceTokens } from './auth/service-tokens.ts';
import { bootstrap } from './bootstrap.ts';
import { Controllers } from './controllers/controllers.ts';
import { eventSweeper } from './controllers/events.ts';
import { garbageCollector } from './controllers/garbage.ts';
import { namespaceController } from './controllers/namespaces.ts';
import { Discovery } from './discovery/discovery.ts';
import { OpenApi } from './discovery/openapi.ts';
import { notFound, statusObject } from './errors.ts';
import { FaultInjection } from './faults.ts';
import { Api } from './http/api.ts';
import { Connections } from './http/connections.ts';
import { asApiError } from './http/respond.ts';
import type { WatchHub } from './http/watch.ts';
import { InProcessApi } from './inprocess.ts';
import { builtinResources } from './registry/builtin/index.ts';
import { Catalogue } from './registry/catalogue.ts';
import { crdStorage } from './registry/crd/types.ts';
import { Registry } from './registry/registry.ts';
import { Journal } from './store/journal.ts';
import { VersionedStore } from './store/versioned.ts';
import type { ApiServer, ApiServerOptions, Kubeconfig } from './types.ts';

const snapshotIntervalMs = 60_000;

/**
 * Starts the API server; resolves once it answers. Rejects when its data cannot be read or its port is not available.
 */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { clock, random, logger, dataDir } = options;
  const onLost = (error: Error) => {
    logger.error({ err: error }, 'API server has lost its journal: writes are refused from now on');
    options.onStorageLost?.(error);
  };
  const boot = random.bytes(8).toString('hex');
  const persisted = dataDir === undefined ? undefined : Journal.open(dataDir, { boot, onLost });
  const store = new VersionedStore({
    historyLength: options.historyLength ?? 2000,
    ...(persisted ? { contents: persisted.contents, sink: persisted.journal } : {}),
  });
  const catalogue = new Catalogue(builtinResources);
  for (const object of store.list(crdStorage)) catalogue.apply({ storage: crdStorage, type: 'ADDED', object });
  store.subscribe((change) => catalogue.apply(change));
  const registry = new Registry({ store, catalogue, clock, random });

  const controllers = new Controllers(logger, clock);
  bootstrap(registry, controllers);
  // The history is dropped: no client can have seen a version from before the start.
  store.compact();
  namespaceController(registry, controllers);
  garbageCollector(registry, controllers);
  const stopSweeping = eventSweeper(registry, clock, logger);

  const keys = serverKeys(clock.now(), dataDir);
  const serviceTokens = new ServiceTokens({ keys, store, clock, random });
  const authenticator = new Authenticator(options.tokens, serviceTokens);
  const rbac = new Rbac(store);
  const reviews = reviewsOf(authenticator, rbac);
  const hub: WatchHub = {
    registry,
    clock,
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? 30_000,
    open: new Set(),
    stalled: false,
  };
  // Watches of a changed kind end, as on a real server. After a deleted definition they end when its objects are gone.
  const endStale = () => {
    for (const watch of hub.open) if (!catalogue.serves(watch.type)) watch.end();
  };
  catalogue.onChange(() => controllers.soon(() => controllers.soon(endStale)));
  const faults = new FaultInjection(hub);
  const api = new Api({
    registry,
    authenticator,
    rbac,
    admission: new AdmissionPolicies(store, rbac),
    reviews,
    documents: { discovery: new Discovery(catalogue, reviews), openapi: new OpenApi(catalogue) },
    pods: { registry, handlers: options.pods },
    tokens: { registry, serviceTokens },
    hub,
    faults,
    logger,
  });

  const connections = new Connections();
  const server = createServer(
    { key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }), cert: keys.certificate, keepAliveTimeout: 60_000 },
    (req, res) => connections.carryOut(req, api.handle(req, res)),
  );
  const upgraded = new Set<Duplex>();
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    // A connection that breaks before it has a listener must not end the server.
    socket.on('error', () => socket.destroy());
    connections.carryOut(
      req,
      api.upgrade(req, socket, head).catch((error: unknown) => refuseUpgrade(socket, error)),
    );
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });

  let cancelSnapshot = () => {};
  const scheduleSnapshot = () => {
    cancelSnapshot = clock.setTimer(snapshotIntervalMs, () => {
      try {
        persisted?.journal.snapshotIfLarge(store.contents());
      } catch (error) {
        logger.warn({ err: error }, 'snapshot could not be written, trying again');
      }
      scheduleSnapshot();
    });
  };
  if (persisted) scheduleSnapshot();

  let closing: Promise<void> | undefined;
  const close = async () => {
    cancelSnapshot();
    controllers.close();
    stopSweeping();
    for (const watch of hub.open) watch.end();
    for (const socket of upgraded) socket.destroy();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
    persisted?.journal.close();
  };

  const { port } = server.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}`;
  logger.info({ url }, 'API server is ready');
  return {
    url,
    port,
    ca: keys.certificate,
    store: new InProcessApi(registry),
    faults,
    mintToken(user) {
      const token = random.bytes(32).toString('base64url');
      authenticator.add({ token, user });
      return token;
    },
    revokeToken(token) {
      authenticator.remove(token);
      return connections.cut(`Bearer ${token}`);
    },
    accountToken({ namespace, name }, { audience, seconds }) {
      const account = store.get('serviceaccounts', namespace, name);
      if (!account) throw notFound({ group: '', plural: 'serviceaccounts' }, name);
      return serviceTokens.mint({ namespace, name, uid: account.metadata.uid as string }, [audience], seconds).token;
    },
    kubeconfig: (token) => kubeconfig(url, keys.certificate, token),
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function kubeconfig(url: string, ca: string, token: string): Kubeconfig {
  const name = 'berth-local';
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
  };
}

/** Answers a refused upgrade with a Status, like any other request. */
function refuseUpgrade(socket: Duplex, error: unknown): void {
  const { status } = asApiError(error);
  const body = JSON.stringify(statusObject(status));
  socket.end(
    `HTTP/1.1 ${status.code} ${status.reason || 'Error'}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
