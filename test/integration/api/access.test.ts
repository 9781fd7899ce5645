import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { routes } from '../../../api/routes/index.ts';
import { serviceAccounts } from '../../../core/kube/resources.ts';
import { VERSION } from '../../../core/program/version.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { Follower } from './follower.ts';
import { ApiCluster, EVERYTHING, roleBindings } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';

describe('access to the API', () => {
  let api: ApiCluster;
  let all: { name: string; token: string };
  beforeAll(async () => {
    api = await ApiCluster.start();
    all = await api.user(EVERYTHING);
  });
  afterAll(() => api.close());

  test('a call without a token, with a wrong one, or with one for another audience is answered 401', async () => {
    const other = await api.user(EVERYTHING, 'somebody-else');
    const cluster = api.cluster.server.mintToken({ username: 'root', groups: ['system:masters'] });
    for (const token of [undefined, 'nonsense', other.token, cluster]) {
      const answer = await api.call('GET', SESSIONS, token ? { token } : {});
      assert.equal(answer.status, 401);
      assert.equal(answer.problem.code, 'Unauthenticated');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/);
    }
    assert.equal((await api.call('GET', SESSIONS, { token: all.token })).status, 200);
  });

  test('every route refuses a caller without rights, and names the right that is missing', async () => {
    const { token } = await api.user([]);
    const parts: Record<string, string> = { namespace: 'default', root: 'work', port: '3000' };
    for (const { method, path } of routes) {
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parts[name] ?? 'some');
      const answer = await api.call(method, url, { token });
      assert.equal(answer.status, 403, `${method} ${path}`);
      if (method === 'HEAD') continue;
      assert.equal(answer.problem.code, 'Forbidden');
      assert.match(
        answer.problem.detail,
        /may not (create|get|list|patch|update|delete) (sessions|turns|approvals)(\/\w+)?\.berth\.dev/,
      );
    }
  });

  test('a right to read gives no right to write', async () => {
    const { token } = await api.user([{ verbs: ['get', 'list'], resources: ['sessions', 'turns'] }]);
    assert.equal((await api.call('GET', SESSIONS, { token })).status, 200);
    assert.equal((await api.call('POST', SESSIONS, { token, body: {} })).status, 403);
    assert.equal((await api.call('DELETE', `${SESSIONS}/some`, { token })).status, 403);
    assert.equal((await api.call('POST', `${SESSIONS}/some/suspend`, { token })).status, 403);
    assert.equal((await api.call('POST', '/v1/namespaces/default/runs', { token, body: {} })).status, 403);
  });

  test('rights end at their namespace', async () => {
    const answer = await api.call('GET', '/v1/namespaces/berth-system/sessions', { token: all.token });
    assert.equal(answer.status, 403);
  });

  test('the body of a caller without rights is not read', async () => {
    const { token } = await api.user([]);
    const answer = await api.call('POST', SESSIONS, { token, body: 'no JSON' });
    assert.equal(answer.status, 403);
  });

  test('the object names its requester, and a caller cannot name another', async () => {
    const made = await api.call('POST', SESSIONS, { token: all.token, body: { metadata: { name: 'stamped' } } });
    assert.equal(made.status, 201, made.text);
    const stored = await api.cluster.client.get(sessions, { namespace: 'default', name: 'stamped' });
    assert.equal(stored.spec.requester, all.name);
    const forged = await api.call('POST', SESSIONS, { token: all.token, body: { spec: { requester: 'root' } } });
    assert.equal(forged.status, 422);
    assert.deepEqual(forged.problem.errors?.[0]?.field, 'spec.requester');
  });

  test('the cluster is asked once for many calls of the same caller', async () => {
    const { token } = await api.user(EVERYTHING);
    let asked = 0;
    const { faults } = api.cluster.server;
    const count = ({ resource = '' }: { resource?: string }) => {
      if (resource.endsWith('reviews')) asked += 1;
      return false;
    };
    faults.failNext(count, { code: 500, reason: 'InternalError', message: 'never used' });
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.call('GET', SESSIONS, { token })));
    for (const { status } of answers) assert.equal(status, 200);
    assert.equal(asked, 2);
  });

  test('a stream ends once its caller has lost the right to it, or its token, and tells nothing more', async (t) => {
    const look = [{ verbs: ['get', 'list'], resources: ['sessions', 'turns'] }];
    const [still, barred, gone] = [await api.user(look), await api.user(look), await api.user(look)];
    const follow = ({ token }: { token: string }) => Follower.open(`${api.url}/v1/namespaces/default/events`, token);
    const [kept, ...lost] = await Promise.all([still, barred, gone].map(follow));
    const followers = [kept as Follower, ...lost];
    t.onTestFinished(() => {
      for (const follower of followers) follower.close();
    });
    const make = (name: string) => api.call('POST', SESSIONS, { token: all.token, body: { metadata: { name } } });
    const sees = (name: string) => (follower: Follower) => follower.events.some(({ data }) => data.session === name);
    await make('seen-by-all');
    await eventually(() => followers.every(sees('seen-by-all')), { what: 'all are told' });
    const { client } = api.cluster;
    const nameOf = ({ name }: { name: string }) => ({ namespace: 'default', name: name.split(':').at(-1) as string });
    await client.delete(roleBindings, nameOf(barred));
    await client.delete(serviceAccounts, nameOf(gone));
    await eventually(() => lost.every(({ ended }) => ended), { what: 'the streams have ended', timeoutMs: 40_000 });
    await make('seen-by-one');
    await eventually(() => followers.some(sees('seen-by-one')), { what: 'one is told' });
    assert.deepEqual(
      followers.map(({ ended }) => ended),
      [false, true, true],
    );
    assert.deepEqual(followers.map(sees('seen-by-one')), [true, false, false]);
  });

  test('while the cluster does not answer, a call is answered 503 and never let through', async () => {
    const { token } = await api.user(EVERYTHING);
    const { faults } = api.cluster.server;
    const reviews = ({ resource = '' }: { resource?: string }) => resource === 'subjectaccessreviews';
    faults.failNext(reviews, { code: 403, reason: 'Forbidden', message: 'induced' });
    const refused = await api.call('GET', SESSIONS, { token });
    assert.equal(refused.status, 503);
    assert.equal(refused.problem.code, 'ClusterUnavailable');
    assert.equal((await api.call('GET', SESSIONS, { token })).status, 200);
  });

  test('every answer names the release of the server, and so does the OpenAPI document', async () => {
    const { token } = await api.user(EVERYTHING);
    const pages = ['/healthz', '/readyz', '/openapi.json', '/metrics', '/nowhere', SESSIONS, `${SESSIONS}/none/logs`];
    for (const path of pages) {
      const { headers } = await api.call('GET', path, { token });
      assert.equal(headers.get('berth-version'), VERSION, path);
    }
    assert.equal((await api.call('GET', '/openapi.json')).body.info.version, VERSION);
  });

  test('health, readiness and the OpenAPI document need no token', async () => {
    assert.equal((await api.call('GET', '/healthz')).text, 'ok\n');
    // A cluster that does not answer within two seconds, as on a machine that is busy, is told as that.
    await eventually(async () => (await api.call('GET', '/readyz')).text === 'ok\n', { what: 'it is ready' });
    assert.equal((await api.call('GET', '/openapi.json')).body.openapi, '3.1.0');
  });
});

test('an installation for some namespaces serves no others', async (t) => {
  const api = await ApiCluster.start({ BERTH_NAMESPACES: 'team-a, team-b' });
  t.onTestFinished(() => api.close());
  const { token } = await api.user(EVERYTHING);
  const answer = await api.call('GET', SESSIONS, { token });
  assert.equal(answer.status, 404);
  assert.equal(answer.problem.code, 'NamespaceNotServed');
});
