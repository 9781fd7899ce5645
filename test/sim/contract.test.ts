import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { silentLogger, systemClock, systemRandom } from '../../core/system.ts';
import { AdmissionPolicies } from '../../local/apiserver/admission/policies.ts';
import { Authenticator } from '../../local/apiserver/auth/authenticate.ts';
import { serverKeys } from '../../local/apiserver/auth/keys.ts';
import { Rbac } from '../../local/apiserver/auth/rbac.ts';
import { reviews as reviewsOf } from '../../local/apiserver/auth/reviews.ts';
import { ServiceTokens } from '../../local/apiserver/auth/service-tokens.ts';
import { bootstrap } from '../../local/apiserver/bootstrap.ts';
import { Controllers } from '../../local/apiserver/controllers/controllers.ts';
import { namespaceController } from '../../local/apiserver/controllers/namespaces.ts';
import { Discovery } from '../../local/apiserver/discovery/discovery.ts';
import { OpenApi } from '../../local/apiserver/discovery/openapi.ts';
import { FaultInjection } from '../../local/apiserver/faults.ts';
import { Api } from '../../local/apiserver/http/api.ts';
import type { WatchHub } from '../../local/apiserver/http/watch.ts';
import { contractSuite } from '../contract/suite.ts';
import type { ContractTarget } from '../contract/target.ts';
import { SimServer } from './api/server.ts';
import { Dice } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { Trace } from './trace.ts';

const TOKEN = 'contract-admin';
const PACE_MS = 5;

/** The simulator's API server with HTTP in front of it; its virtual time goes on with the real one. */
async function connect(): Promise<ContractTarget> {
  const dice = new Dice(1, 'contract');
  const scheduler = new Scheduler(dice, new Trace({ time: () => 0 }));
  const { registry, store } = new SimServer(scheduler, dice);
  const { catalogue } = registry;
  store.subscribe((change) => catalogue.apply(change));
  const startedAt = performance.now();
  let running = Promise.resolve<unknown>(undefined);
  const pace = setInterval(() => {
    running = running.then(() => scheduler.run(() => false, performance.now() - startedAt));
  }, PACE_MS);

  const controllers = new Controllers(silentLogger, systemClock);
  bootstrap(registry, controllers);
  // Versions from before the start are unknown to every client.
  store.compact();
  namespaceController(registry, controllers);
  const keys = serverKeys(systemClock.now(), undefined);
  const serviceTokens = new ServiceTokens({ keys, store, clock: systemClock, random: systemRandom });
  const user = { username: 'admin', uid: 'admin-uid', groups: ['system:masters'] };
  const authenticator = new Authenticator([{ token: TOKEN, user }], serviceTokens);
  const rbac = new Rbac(store);
  const reviews = reviewsOf(authenticator, rbac);
  const hub: WatchHub = { registry, clock: systemClock, bookmarkIntervalMs: 30_000, open: new Set(), stalled: false };
  // The garbage collector takes virtual time to delete the objects of a deleted definition. Their watches end then.
  store.subscribe(() =>
    controllers.soon(() => {
      for (const watch of hub.open) {
        const { type } = watch;
        if (!catalogue.serves(type) && store.list(type.storage).length === 0) watch.end();
      }
    }),
  );
  const api = new Api({
    registry,
    authenticator,
    rbac,
    admission: new AdmissionPolicies(store, rbac),
    reviews,
    documents: { discovery: new Discovery(catalogue, reviews), openapi: new OpenApi(catalogue) },
    pods: { registry, handlers: undefined },
    tokens: { registry, serviceTokens },
    hub,
    faults: new FaultInjection(hub),
    logger: silentLogger,
  });
  const server = createServer({
    key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: keys.certificate,
  });
  server.on('request', (req, res) => void api.handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    connection: { url: `https://127.0.0.1:${port}`, ca: keys.certificate, token: TOKEN },
    close: async () => {
      clearInterval(pace);
      controllers.close();
      for (const watch of hub.open) watch.end();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([closed, running]);
    },
  };
}

// `contract/pods.ts` is left out: containers, logs, attach and exec are served by kubelets, and the simulator's run no
// processes. `cluster/pod.ts` simulates what Berth needs of them, around the runner's real code.
contractSuite('simulated', connect);
