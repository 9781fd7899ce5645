import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { HELPER_PATH } from '../../../core/enter/hello.ts';
import { podName, poolPodName } from '../../../core/resources/names.ts';
import { apiAttempts, fault, prepare } from '../../support/account-attempts.ts';
import { Installation } from '../../support/installation.ts';
import { RawApi } from '../../support/raw-api.ts';

const PLACE = { namespace: 'default', releaseNamespace: 'berth-system', release: 'berth', enter: true };

describe('the account of the HTTP API', () => {
  let cluster: Installation;
  let admin: RawApi;
  let api: RawApi;
  let owners: Awaited<ReturnType<typeof prepare>>;
  beforeAll(async () => {
    cluster = await Installation.start();
    const { url, ca } = cluster.server;
    const connect = (username: string, groups: string[]) =>
      new RawApi({ url, ca, token: cluster.server.mintToken({ username, groups }) });
    admin = connect('admin', ['system:masters']);
    api = connect('system:serviceaccount:berth-system:berth-api', ['system:authenticated']);
    owners = await prepare(admin, PLACE);
  });
  afterAll(async () => {
    await Promise.all([admin.close(), api.close()]);
    await cluster.stop();
  });

  test('does what Berth does, and each other attempt is refused by the policy for it, or by RBAC', async () => {
    const faults: string[] = [];
    const attempts = apiAttempts(PLACE, owners);
    assert.ok(attempts.filter(({ by }) => by).length > 40);
    for (const attempt of attempts) {
      if (attempt.onlyReal) continue;
      const found = await fault(api, PLACE, attempt);
      if (found) faults.push(found);
    }
    assert.deepEqual(faults, []);
  });

  test('enters pods of sessions and pools with the helper', async () => {
    for (const name of [podName(owners.session, 1), poolPodName(owners.pool, 1)]) {
      const query = `command=${encodeURIComponent(HELPER_PATH)}&container=session&stdin=true&stdout=true`;
      // There is no such pod: what the policy allows is answered 404.
      assert.equal((await api.get(`/api/v1/namespaces/default/pods/${name}/exec?${query}`)).status, 404, name);
    }
  });
});
