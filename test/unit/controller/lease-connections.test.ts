import assert from 'node:assert/strict';
import { test } from 'vitest';
import { controllerConfig } from '../../../controller/config.ts';
import { Controller } from '../../../controller/controller.ts';
import { pods } from '../../../core/kube/resources.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { seededRandom } from '../../support/random.ts';
import { serverAndClient } from '../kube/support.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/berth/leases/berth-controller';
const CONNECTIONS = 4;

test('a leader renews its lease while requests without an answer take all other connections', async (t) => {
  const { server, client } = await serverAndClient(t, { maxConnections: CONNECTIONS });
  const leaseApi = client.apart(1);
  const controller = new Controller({
    api: client,
    leaseApi,
    config: controllerConfig.parse({
      BERTH_RUNNER_IMAGE: 'runner:1',
      BERTH_MASTER_KEY_SECRET: 'keys',
      BERTH_LEASE_DURATION: '3s',
    }),
    namespace: 'berth',
    holder: 'controller',
    clock: systemClock,
    ownTime: systemClock.now,
    random: seededRandom(),
    log: silentLogger,
  });
  const over = new AbortController();
  t.onTestFinished(async () => {
    over.abort();
    await controller.stop();
    await leaseApi.close();
  });
  await controller.start();
  await eventually(() => controller.isLeading, { what: 'it leads' });
  server.intercept = ({ path }) => path.endsWith('/hangs');
  const ask = () => client.get(pods, { namespace: 'ns', name: 'hangs' }, { signal: over.signal });
  for (let i = 0; i < CONNECTIONS * 2; i++) ask().catch(() => {});
  const isHanging = () => server.requests.filter(({ path }) => path.endsWith('/hangs')).length === CONNECTIONS;
  await eventually(isHanging, { what: 'all connections are taken' });
  const renewals = () => server.requests.filter(({ method, path }) => method === 'PUT' && path === LEASE).length;
  const before = renewals();
  await eventually(() => renewals() >= before + 3, { timeoutMs: 5_000, what: 'three renewals' });
  assert.equal(controller.isLeading, true);
});
