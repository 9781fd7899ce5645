import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { tools } from '../support/tools.ts';
import {
  apply,
  ended,
  finish,
  get,
  kubectl,
  makeNamespace,
  release,
  releaseNamespace,
  session,
} from './support/cluster.ts';
import { install } from './support/release.ts';

const account = (component: string) => `system:serviceaccount:${releaseNamespace}:${release}-${component}`;

async function can(who: string, verb: string, resource: string, ...more: string[]): Promise<boolean> {
  const { kubectl: program } = await tools();
  const { stdout } = await finish(program, ['auth', 'can-i', verb, resource, '--as', who, ...more]);
  return stdout.trim() === 'yes';
}

const everywhere = ['--all-namespaces'];
const own = ['-n', releaseNamespace];

describe('rights', () => {
  // What follows changes the release; the next file finds it as it was.
  after(() => install());

  test('the programs may do what they need and nothing else', async () => {
    const table: [string, string, string, string[], boolean][] = [
      ['controller', 'create', 'pods', everywhere, true],
      ['controller', 'get', 'pods', ['--subresource', 'attach', ...everywhere], true],
      ['controller', 'create', 'pods', ['--subresource', 'attach', ...everywhere], true],
      ['controller', 'update', 'turns.berth.dev', ['--subresource', 'status', ...everywhere], true],
      ['controller', 'get', `secrets/${release}-master-key`, own, true],
      ['controller', 'get', 'secrets', own, false],
      ['controller', 'list', 'secrets', everywhere, false],
      ['controller', 'get', `secrets/${release}-master-key`, ['-n', 'default'], false],
      ['controller', 'create', 'pods', ['--subresource', 'exec', ...everywhere], false],
      ['controller', 'delete', 'sessions.berth.dev', everywhere, false],
      ['controller', 'update', 'sessionclasses.berth.dev', [], false],
      ['controller', 'get', 'nodes', [], false],
      ['api', 'create', 'subjectaccessreviews.authorization.k8s.io', [], true],
      ['api', 'create', 'sessions.berth.dev', everywhere, true],
      ['api', 'update', 'turns.berth.dev', ['--subresource', 'status', ...everywhere], false],
      ['api', 'get', 'pods', everywhere, false],
      ['api', 'get', 'secrets', own, false],
    ];
    for (const [component, verb, resource, where, expected] of table) {
      const allowed = await can(account(component), verb, resource, ...where);
      assert.equal(allowed, expected, `${component} ${verb} ${resource} ${where.join(' ')}`);
    }
  });

  test('who may view cannot create, and who may edit can', async (t) => {
    const namespace = await makeNamespace(t);
    const { kubectl: program } = await tools();
    for (const role of ['view', 'edit']) {
      await kubectl(['create', 'serviceaccount', role, '-n', namespace]);
      const subject = `--serviceaccount=${namespace}:${role}`;
      await kubectl(['create', 'rolebinding', role, '-n', namespace, `--clusterrole=${role}`, subject]);
    }
    const as = (role: string, args: string[], input?: object) =>
      finish(program, [...args, '-n', namespace, '--as', `system:serviceaccount:${namespace}:${role}`], {
        input: JSON.stringify(input ?? ''),
      });
    const refused = await as('view', ['create', '-f', '-'], session(namespace, 'mine'));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Forbidden|forbidden/);
    const made = await as('edit', ['create', '-f', '-'], session(namespace, 'mine'));
    assert.equal(made.code, 0, made.stderr);
    assert.equal((await as('view', ['get', 'sessions,turns,blobs'])).code, 0);
    const status = await as('edit', [
      'patch',
      'session',
      'mine',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Ready"}}',
    ]);
    assert.match(status.stderr, /forbidden/);
  });

  test('with listed namespaces it serves those alone, and holds no right on anything elsewhere', async (t) => {
    const served = await makeNamespace(t);
    const other = await makeNamespace(t);
    await install({ namespaces: [served] });
    await apply(
      session(served, 'here', { turns: 'One', input: 'hello' }),
      session(other, 'there', { turns: 'One', input: 'hello' }),
    );
    const done = await ended(served, 'here');
    assert.equal(done.status.phase, 'Succeeded', JSON.stringify(done.status));
    const there = await get(['session', 'there', '-n', other]);
    assert.equal(there.status, undefined);

    for (const component of ['controller', 'api']) {
      const name = `${releaseNamespace}:${release}-${component}`;
      const { rules } = await get(['clusterrole', name]);
      const allowed = rules.flatMap(({ resources, verbs }: { resources: string[]; verbs: string[] }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      );
      const most = ['get', 'list', 'watch'].map((verb) => `${verb} sessionclasses`);
      most.push('create tokenreviews', 'create subjectaccessreviews');
      assert.deepEqual(
        allowed.filter((right: string) => !most.includes(right)),
        [],
      );
    }
    assert.equal(await can(account('controller'), 'create', 'pods', '-n', served), true);
    assert.equal(await can(account('controller'), 'create', 'pods', '-n', other), false);
    assert.equal(await can(account('controller'), 'get', 'sessions.berth.dev', '-n', other), false);
    assert.equal(await can(account('api'), 'get', 'sessions.berth.dev', '-n', other), false);
  });
});
