import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { sessions } from '../../../core/resources/kinds.ts';
import { podName, poolPodName } from '../../../core/resources/names.ts';
import { controllerAttempts, fault, prepare } from '../../support/account-attempts.ts';
import { eventually } from '../../support/eventually.ts';
import { CONTROLLER, Installation, ONE_LEADER } from '../../support/installation.ts';
import { RawApi } from '../../support/raw-api.ts';

const PLACE = { namespace: 'default', releaseNamespace: 'berth-system', release: 'berth', enter: true };

describe('the account of the controller', () => {
  let cluster: Installation;
  let admin: RawApi;
  let controller: RawApi;
  let owners: Awaited<ReturnType<typeof prepare>>;
  beforeAll(async () => {
    cluster = await Installation.start();
    const { url, ca } = cluster.server;
    const connect = (username: string, groups: string[]) =>
      new RawApi({ url, ca, token: cluster.server.mintToken({ username, groups }) });
    admin = connect('admin', ['system:masters']);
    controller = connect(CONTROLLER, ['system:authenticated']);
    owners = await prepare(admin, PLACE);
  });
  afterAll(async () => {
    await Promise.all([admin.close(), controller.close()]);
    await cluster.stop();
  });

  test('does what Berth does, and each other attempt is refused by the policy for it, or by RBAC', async () => {
    const faults: string[] = [];
    const attempts = controllerAttempts(PLACE, owners);
    assert.ok(attempts.filter(({ by }) => by).length > 40);
    for (const attempt of attempts) {
      if (attempt.onlyReal) continue;
      const found = await fault(controller, PLACE, attempt);
      if (found) faults.push(found);
    }
    assert.deepEqual(faults, []);
  });

  test('makes no pod in a namespace of the cluster or of Berth, and the session says so and what to do', async () => {
    cluster.startController(ONE_LEADER);
    for (const namespace of ['kube-public', 'berth-system']) {
      await cluster.create('closed', { agent: { command: ['true'] }, input: 1 }, namespace);
      const told = await eventually(
        async () => {
          const { status } = await cluster.client.get(sessions, { namespace, name: 'closed' });
          return status?.conditions?.find(({ message }) => /Berth runs no sessions in namespace/.test(message ?? ''));
        },
        { what: `the session in ${namespace} says why it has no pod` },
      );
      assert.equal(told.status, 'False', JSON.stringify(told));
      assert.match(told.message ?? '', new RegExp(`namespace ${namespace}, .*create the session in another namespace`));
    }
  });

  test('reaches the pods of sessions and pools by an attach', async () => {
    for (const name of [podName(owners.session, 1), poolPodName(owners.pool, 1)]) {
      // There is no such pod: what the policy allows is answered 404.
      const path = `/api/v1/namespaces/default/pods/${name}/attach?stdin=true&container=session`;
      assert.equal((await controller.get(path)).status, 404, name);
    }
  });
});
