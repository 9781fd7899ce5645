import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { apply, ended, get, makeNamespace, release, releaseNamespace, session } from '../support/cluster.ts';
import { install } from '../support/release.ts';
import { account, becomes } from '../support/rights.ts';

describe('an installation', () => {
  afterAll(() => install());

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
    const inServed = ['-n', served];
    const inOther = ['-n', other];
    await becomes(true, account('controller'), 'create', 'pods', ...inServed);
    await becomes(false, account('controller'), 'create', 'pods', ...inOther);
    await becomes(true, account('controller'), 'get', `namespaces/${served}`, ...inServed);
    await becomes(false, account('controller'), 'get', `namespaces/${other}`, ...inOther);
    await becomes(false, account('controller'), 'list', 'namespaces');
    await becomes(false, account('controller'), 'get', 'sessions.berth.dev', ...inOther);
    await becomes(true, account('api'), 'watch', 'sessions.berth.dev', ...inServed);
    await becomes(false, account('api'), 'get', 'sessions.berth.dev', ...inOther);
  });
});
