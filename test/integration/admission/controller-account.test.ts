import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { podName, poolPodName } from '../../../core/resources/names.ts';
import { controllerAttempts, fault, prepare } from '../../support/account-attempts.ts';
import { CONTROLLER, Installation } from '../../support/installation.ts';
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

  test('reaches the pods of sessions and pools by an attach', async () => {
    for (const name of [podName(owners.session, 1), poolPodName(owners.pool, 1)]) {
      // There is no such pod: what the policy allows is answered 404.
      const path = `/api/v1/namespaces/default/pods/${name}/attach?stdin=true&container=session`;
      assert.equal((await controller.get(path)).status, 404, name);
    }
  });
});
