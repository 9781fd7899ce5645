import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const DEFAULT = '/v1/namespaces/default';

describe('turns and texts of a namespace', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user(EVERYTHING));
    for (const name of ['one', 'two']) {
      await api.cluster.create(name, { agent: pythonAgent("print('said', request['input'], flush=True); answer(1)") });
      for (const turn of ['a', 'b']) {
        const body = { metadata: { name: `${name}-${turn}` }, spec: { input: turn } };
        const { status } = await api.call('POST', `${DEFAULT}/sessions/${name}/turns`, { token, body });
        assert.equal(status, 201);
      }
    }
    for (const name of ['one-b', 'two-b']) await api.cluster.ended(name);
  });
  afterAll(() => api.close());
  const namesOf = async (query: string) => {
    const { status, body } = await api.call('GET', `${DEFAULT}/turns${query}`, { token });
    assert.equal(status, 200);
    return body.items.map(
      ({ metadata, spec }: never) => `${(spec as { session: string }).session} ${(metadata as { name: string }).name}`,
    );
  };

  test('the turns of all sessions are listed, in pages, or the one of a name', async () => {
    assert.deepEqual(await namesOf(''), ['one one-a', 'one one-b', 'two two-a', 'two two-b']);
    assert.deepEqual(await namesOf('?name=two-a'), ['two two-a']);
    assert.deepEqual(await namesOf('?name=three'), []);
    const { body } = await api.call('GET', `${DEFAULT}/turns?limit=3`, { token });
    assert.equal(body.items.length, 3);
    assert.deepEqual(await namesOf(`?continue=${encodeURIComponent(body.continue)}`), ['two two-b']);
    assert.equal((await api.call('GET', `${DEFAULT}/turns?name=NO`, { token })).problem.code, 'InvalidParameter');
  });

  test('it takes the right to list turns', async () => {
    const other = await api.user([{ verbs: ['get'], resources: ['turns'] }]);
    assert.equal((await api.call('GET', `${DEFAULT}/turns`, { token: other.token })).status, 403);
  });

  test('the text of a session begins at sinceTime', async () => {
    const logs = (query: string) => api.call('GET', `${DEFAULT}/sessions/one/logs${query}`, { token });
    assert.match((await logs('')).text, /said a\nsaid b\n/);
    const later = new Date(Date.now() + 60_000).toISOString();
    assert.equal((await logs(`?sinceTime=${later}`)).text, '');
    assert.match((await logs('?sinceTime=2020-01-01T00:00:00Z')).text, /said a\nsaid b\n/);
    assert.equal((await logs('?sinceTime=yesterday')).problem.code, 'InvalidParameter');
  });
});
