import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Connect, useBench } from './target.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';

export function accessContract(connect: Connect): void {
  describe('access', () => {
    const bench = useBench(connect);
    let token = '';
    let account = '';
    const user = () => `system:serviceaccount:${bench.namespace}:${account}`;

    const requestToken = async (spec: object) => {
      const { status, body, text } = await bench.api.post(`${bench.core}/serviceaccounts/${account}/token`, { spec });
      assert.equal(status, 201, text);
      return body;
    };

    beforeAll(async () => {
      account = bench.name('robot');
      await bench.api.post(`${bench.core}/serviceaccounts`, { metadata: { name: account } });
      token = (await requestToken({})).status.token;
      await bench.api.post(`${rbac}/namespaces/${bench.namespace}/roles`, {
        metadata: { name: 'reader' },
        rules: [
          { apiGroups: ['contract.berth.dev'], resources: ['widgets'], verbs: ['get', 'list', 'watch', 'create'] },
          { apiGroups: ['contract.berth.dev'], resources: ['widgets/status'], verbs: ['patch'] },
          { apiGroups: [''], resources: ['configmaps'], resourceNames: ['only-this'], verbs: ['get', 'list', 'watch'] },
          { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
        ],
      });
      await bench.api.post(`${rbac}/namespaces/${bench.namespace}/rolebindings`, {
        metadata: { name: 'reader' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace: bench.namespace }],
      });
      await eventually(async () => (await bench.api.get(bench.widgets, { token })).status === 200, {
        what: 'the role is in effect',
      });
    });

    test('a request without a token, or with a wrong one, is 401', async () => {
      for (const wrong of ['', 'garbage', `${token}x`]) {
        const { status, body } = await bench.api.get(bench.widgets, { token: wrong });
        if (wrong === '' && status === 403) continue;
        assert.equal(status, 401);
        assert.equal(body.reason, 'Unauthorized');
        assert.equal(body.message, 'Unauthorized');
      }
    });

    test('a role in a namespace can allow to read the namespace itself, and no list of namespaces', async () => {
      assert.equal((await bench.api.get(`/api/v1/namespaces/${bench.namespace}`, { token })).status, 200);
      assert.equal((await bench.api.get('/api/v1/namespaces/default', { token })).status, 403);
      assert.equal((await bench.api.get('/api/v1/namespaces', { token })).status, 403);
      const one = `/api/v1/namespaces?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D${bench.namespace}`;
      assert.equal((await bench.api.get(one, { token })).status, 403);
    });

    test('requests that a role allows work, and no others', async () => {
      const as = { token };
      assert.equal((await bench.api.get(bench.widgets, as)).status, 200);
      const made = await bench.api.post(bench.widgets, bench.widget({ spec: { size: 1 } }), as);
      assert.equal(made.status, 201);
      const patched = await bench.api.call('PATCH', `${bench.at(made.body)}/status`, {
        ...as,
        body: { status: { phase: 'Running' } },
        contentType: 'application/merge-patch+json',
      });
      assert.equal(patched.status, 200);
      assert.equal((await bench.api.call('DELETE', bench.at(made.body), as)).status, 403);
      assert.equal((await bench.api.get(`${bench.core}/secrets`, as)).status, 403);
      assert.equal((await bench.api.get('/apis/contract.berth.dev/v1/widgets', as)).status, 403);
    });

    test('a role for named objects is for these alone', async () => {
      assert.equal((await bench.api.get(`${bench.core}/configmaps/only-this`, { token })).status, 404);
      assert.equal((await bench.api.get(`${bench.core}/configmaps/other`, { token })).status, 403);
      assert.equal((await bench.api.get(`${bench.core}/configmaps`, { token })).status, 403);
      const selected = (name: string, more = '') =>
        bench.api.get(`${bench.core}/configmaps?fieldSelector=metadata.name%3D${name}${more}`, { token });
      assert.equal((await selected('only-this')).status, 200);
      assert.equal((await selected('only-this', '&watch=true&timeoutSeconds=1')).status, 200);
      assert.equal((await selected('other')).status, 403);
    });

    test('a refusal says who cannot do what where', async () => {
      const one = await bench.api.call('DELETE', `${bench.widgets}/x`, { token });
      assert.equal(one.body.reason, 'Forbidden');
      assert.equal(
        one.body.message,
        `widgets.contract.berth.dev "x" is forbidden: User "${user()}" cannot delete resource "widgets" in API group "contract.berth.dev" in the namespace "${bench.namespace}"`,
      );
      const everywhere = await bench.api.get('/apis/contract.berth.dev/v1/widgets', { token });
      assert.equal(
        everywhere.body.message,
        `widgets.contract.berth.dev is forbidden: User "${user()}" cannot list resource "widgets" in API group "contract.berth.dev" at the cluster scope`,
      );
      const path = await bench.api.get('/metrics', { token });
      assert.equal(path.status, 403);
      assert.match(path.body?.message ?? path.text, /User "[^"]+" cannot get path "\/metrics"/);
    });

    test('every authenticated user may read discovery', async () => {
      for (const path of ['/api', '/apis', '/version', '/openapi/v3', '/apis/contract.berth.dev/v1']) {
        assert.equal((await bench.api.get(path, { token })).status, 200, path);
      }
    });

    test('a token review tells whose a token is', async () => {
      const { status, body } = await bench.api.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } });
      assert.equal(status, 201);
      assert.equal(body.status.authenticated, true);
      assert.equal(body.status.user.username, user());
      assert.ok(body.status.user.uid);
      assert.deepEqual(body.status.user.groups, [
        'system:serviceaccounts',
        `system:serviceaccounts:${bench.namespace}`,
        'system:authenticated',
      ]);
      assert.equal(body.status.audiences.length, 1);
    });

    test('a token counts for the audiences it was made for', async () => {
      const made = await requestToken({ audiences: ['berth', 'other'], expirationSeconds: 600 });
      assert.deepEqual(made.spec.audiences, ['berth', 'other']);
      assert.match(made.status.expirationTimestamp, /Z$/);
      const review = async (audiences: string[]) =>
        (
          await bench.api.post('/apis/authentication.k8s.io/v1/tokenreviews', {
            spec: { token: made.status.token, audiences },
          })
        ).body.status;
      assert.deepEqual((await review(['berth', 'third'])).audiences, ['berth']);
      const wrong = await review(['third']);
      assert.equal(wrong.authenticated ?? false, false);
      assert.match(wrong.error, /token audiences \["berth" "other"\] is invalid for the target audiences \["third"\]/);
      const plain = await bench.api.get(bench.widgets, { token: made.status.token });
      assert.equal(plain.status, 401);
    });

    test('a token review of garbage is answered, not refused', async () => {
      const { status, body } = await bench.api.post('/apis/authentication.k8s.io/v1/tokenreviews', {
        spec: { token: 'garbage' },
      });
      assert.equal(status, 201);
      assert.equal(body.status.authenticated ?? false, false);
      assert.match(body.status.error, /invalid bearer token/);
    });

    test('a token for too short a time is 422', async () => {
      const { status, body } = await bench.api.post(`${bench.core}/serviceaccounts/${account}/token`, {
        spec: { expirationSeconds: 10 },
      });
      assert.equal(status, 422);
      assert.match(
        body.message,
        /spec\.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes/,
      );
    });

    test('the token of a service account that is gone is 401', async () => {
      const name = bench.name('robot');
      await bench.api.post(`${bench.core}/serviceaccounts`, { metadata: { name } });
      const made = await bench.api.post(`${bench.core}/serviceaccounts/${name}/token`, { spec: {} });
      await bench.api.delete(`${bench.core}/serviceaccounts/${name}`);
      await eventually(
        async () => (await bench.api.get('/version', { token: made.body.status.token })).status === 401,
        { what: 'the token is refused' },
      );
    });

    const review = async (attributes: object, subject: object = {}) => {
      const { status, body, text } = await bench.api.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        spec: {
          user: user(),
          groups: ['system:serviceaccounts', `system:serviceaccounts:${bench.namespace}`, 'system:authenticated'],
          ...subject,
          ...attributes,
        },
      });
      assert.equal(status, 201, text);
      return body.status;
    };
    const widgets = (verb: string, fields: object = {}) => ({
      resourceAttributes: {
        namespace: bench.namespace,
        verb,
        group: 'contract.berth.dev',
        resource: 'widgets',
        ...fields,
      },
    });

    test('a subject access review answers as the request would be', async () => {
      const allowed = await review(widgets('list'));
      assert.equal(allowed.allowed, true);
      assert.match(
        allowed.reason,
        /^RBAC: allowed by RoleBinding "reader\/[^"]+" of Role "reader" to ServiceAccount "[^"]+"$/,
      );
      assert.equal((await review(widgets('delete'))).allowed, false);
      assert.equal((await review(widgets('patch', { subresource: 'status' }))).allowed, true);
      assert.equal((await review(widgets('patch'))).allowed, false);
      assert.equal((await review(widgets('list', { namespace: 'default' }))).allowed, false);
      assert.equal((await review({ nonResourceAttributes: { path: '/api', verb: 'get' } })).allowed, true);
      assert.equal((await review({ nonResourceAttributes: { path: '/logs', verb: 'get' } })).allowed, false);
      assert.equal((await review(widgets('delete'), { groups: ['system:masters'] })).allowed, true);
    });

    test('a review without subject or question is 422', async () => {
      const post = (spec: object) => bench.api.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
      assert.equal((await post({ user: 'x' })).status, 422);
      const { status, body } = await post(widgets('get'));
      assert.equal(status, 422);
      assert.match(body.message, /at least one of user or group must be specified/);
    });

    test('a user can ask for their own rights', async () => {
      const ask = (verb: string) =>
        bench.api.post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: widgets(verb) }, { token });
      assert.equal((await ask('get')).body.status.allowed, true);
      assert.equal((await ask('delete')).body.status.allowed, false);
      const who = await bench.api.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { token });
      assert.equal(who.body.status.userInfo.username, user());
    });

    const self = (headers: Record<string, string | string[]>, as = {}) =>
      bench.api.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { headers, ...as });

    test('an administrator acts as whom the Impersonate headers name, with that user’s rights alone', async () => {
      const headers = { 'impersonate-user': user() };
      assert.equal((await bench.api.get(bench.widgets, { headers })).status, 200);
      const refused = await bench.api.get(`${bench.core}/secrets`, { headers });
      assert.equal(refused.status, 403);
      assert.match(refused.body.message, new RegExp(`User "${user()}" cannot list resource "secrets"`));
      const alice = { 'impersonate-user': 'alice' };
      assert.equal((await bench.api.get(bench.widgets, { headers: alice })).status, 403);
      const question = { spec: widgets('list') };
      const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      assert.equal((await bench.api.post(reviews, question, { headers: alice })).body.status.allowed, false);
      assert.equal((await bench.api.post(reviews, question, { headers })).body.status.allowed, true);
      const masters = { ...alice, 'impersonate-group': ['team', 'system:masters'] };
      assert.equal((await bench.api.get(bench.widgets, { headers: masters })).status, 200);
    });

    test('an impersonated user has the groups, UID and extra fields of the headers, and the groups that everybody has', async () => {
      const named = {
        'impersonate-user': 'alice',
        'impersonate-group': ['team', 'other'],
        'impersonate-uid': 'u-1',
        'impersonate-extra-example.com%2fscope': ['a', 'b'],
      };
      const { username, groups, uid, extra } = (await self(named)).body.status.userInfo;
      assert.deepEqual([username, uid, extra], ['alice', 'u-1', { 'example.com/scope': ['a', 'b'] }]);
      assert.deepEqual(groups, ['team', 'other', 'system:authenticated']);
      const account = (await self({ 'impersonate-user': user() })).body.status.userInfo;
      const own = ['system:serviceaccounts', `system:serviceaccounts:${bench.namespace}`, 'system:authenticated'];
      assert.deepEqual(account.groups, own);
    });

    test('who lacks the verb impersonate acts as nobody else', async () => {
      const as = { token };
      for (const [headers, what] of [
        [
          { 'impersonate-user': 'alice' },
          'users "alice" is forbidden: User "USER" cannot impersonate resource "users"',
        ],
        [
          { 'impersonate-user': 'system:serviceaccount:default:default' },
          'serviceaccounts "default" is forbidden: User "USER" cannot impersonate resource "serviceaccounts"',
        ],
      ] as const) {
        const { status, body } = await self(headers, as);
        assert.equal(status, 403);
        assert.ok(body.message.startsWith(what.replace('USER', user())), body.message);
      }
      const role = { apiGroups: [''], resources: ['users'], resourceNames: ['alice'], verbs: ['impersonate'] };
      const name = bench.name(`${bench.namespace}-actor`);
      await bench.api.post(`${rbac}/clusterroles`, { metadata: { name }, rules: [role] });
      await bench.api.post(`${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace: bench.namespace }],
      });
      await eventually(async () => (await self({ 'impersonate-user': 'alice' }, as)).status === 201, {
        what: 'the role is in effect',
      });
      assert.equal((await self({ 'impersonate-user': 'bob' }, as)).status, 403);
      const grouped = await self({ 'impersonate-user': 'alice', 'impersonate-group': 'system:masters' }, as);
      assert.equal(grouped.status, 403);
      assert.match(grouped.body.message, /cannot impersonate resource "groups" in API group "" at the cluster scope/);
      for (const kind of ['clusterrolebindings', 'clusterroles']) await bench.api.delete(`${rbac}/${kind}/${name}`);
    });

    test('groups to be impersonated without a user are refused, not ignored', async () => {
      const { status, body } = await self({ 'impersonate-group': 'team' });
      assert.deepEqual([status, body.reason], [400, 'BadRequest']);
      assert.match(body.message, /without impersonating a user/);
    });

    test('a binding cannot be given another role', async () => {
      const { status, body } = await bench.api.patch(`${rbac}/namespaces/${bench.namespace}/rolebindings/reader`, {
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      });
      assert.equal(status, 422);
      assert.match(body.message, /cannot change roleRef/);
    });
  });
}
