import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ApiCluster, EVERYTHING } from './support.ts';

const LONG = 'n'.repeat(250);

describe('artifacts over HTTP', () => {
  const script = `cd "$BERTH_OUTPUT_DIR"; mkdir -p sub/${LONG}; printf '<p>é' > 'sub/ü %2F?#.html'
    printf long > sub/${LONG}/${LONG}; head -c 600000 /dev/zero > zero; ln -s / link; cat`;
  const path = '/v1/namespaces/default/sessions/notes/turns';
  let api: ApiCluster;
  let token: string;

  beforeAll(async () => {
    api = await ApiCluster.start();
    api.cluster.startController();
    ({ token } = await api.user(EVERYTHING));
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' };
    await api.cluster.create('notes', { agent } as never);
    await api.cluster.turn('notes', 'notes-1', 'x');
    assert.equal((await api.cluster.ended('notes-1')).status?.phase, 'Succeeded');
  });
  afterAll(() => api.close());
  const get = (name: string, headers: Record<string, string> = {}) =>
    api.call('GET', `${path}/notes-1/artifacts/${encodeURIComponent(name)}`, { token, headers });

  test('are listed with size and digest, and what was left out is named', async () => {
    const { status, body } = await api.call('GET', `${path}/notes-1/artifacts`, { token });
    assert.equal(status, 200);
    const zero = createHash('sha256').update(Buffer.alloc(600_000)).digest('hex');
    assert.deepEqual(
      body.items.map(({ name, bytes }: { name: string; bytes: number }) => [name, bytes]),
      [
        [`sub/${LONG}/${LONG}`, 4],
        ['sub/ü %2F?#.html', 5],
        ['zero', 600_000],
      ],
    );
    assert.deepEqual(body.items[2], { name: 'zero', bytes: 600_000, digest: zero });
    assert.deepEqual(body.leftOut, { count: 1, entries: [{ name: 'link', reason: 'Symlink' }] });
  });

  test('are read whole under their percent-encoded names, with digest and type', async () => {
    const { status, text, headers } = await get('sub/ü %2F?#.html');
    assert.deepEqual([status, text], [200, '<p>é']);
    const digest = createHash('sha256').update('<p>é');
    assert.equal(headers.get('repr-digest'), `sha-256=:${digest.copy().digest('base64')}:`);
    assert.equal(headers.get('etag'), `"${digest.digest('hex')}"`);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.match(headers.get('content-disposition') ?? '', /^attachment/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal((await get(`sub/${LONG}/${LONG}`)).text, 'long');
    const zero = await get('zero');
    assert.deepEqual([zero.text.length, zero.headers.get('content-length')], [600_000, '600000']);
  });

  test('are read in part by Range; beyond the end is 416, and what the client has is 304', async () => {
    const part = await get('zero', { range: 'bytes=-70000' });
    assert.deepEqual([part.status, part.text.length], [206, 70_000]);
    assert.equal(part.headers.get('content-range'), 'bytes 530000-599999/600000');
    const beyond = await get('zero', { range: 'bytes=600000-' });
    assert.deepEqual([beyond.status, beyond.problem.code], [416, 'RangeNotSatisfiable']);
    assert.equal(beyond.headers.get('content-range'), 'bytes */600000');
    const known = await get('zero', { 'if-none-match': part.headers.get('etag') ?? '' });
    assert.deepEqual([known.status, known.text], [304, '']);
  });

  test('of a turn without such a name are 404, and names that lead out are refused', async () => {
    assert.equal((await get('nothing')).problem.code, 'NoArtifact');
    for (const name of ['../zero', '/zero', 'sub//x', 'a\0']) {
      const { status, problem } = await get(name);
      assert.deepEqual([status, problem.code], [400, 'InvalidParameter'], name);
    }
    const other = await api.call('GET', `${path}/nobody/artifacts/zero`, { token });
    assert.equal(other.problem.code, 'NotFound');
  });

  test('of a turn that has not ended are 409', async () => {
    await api.cluster.create('held', { suspend: true });
    await api.cluster.turn('held', 'held-1', 'x');
    const held = '/v1/namespaces/default/sessions/held/turns/held-1/artifacts';
    for (const page of [held, `${held}/x`]) {
      assert.equal((await api.call('GET', page, { token })).problem.code, 'TurnNotFinished', page);
    }
  });

  test('take the right to get the turn, and no other, also for their contents', async () => {
    const one = `${path}/notes-1/artifacts/zero`;
    const nobody = await api.user([{ verbs: ['get'], resources: ['sessions', 'blobs'] }]);
    for (const page of [`${path}/notes-1/artifacts`, one]) {
      const refused = await api.call('GET', page, { token: nobody.token });
      assert.equal(refused.status, 403, page);
      assert.match(refused.problem.detail, /get turns\.berth\.dev/);
    }
    const looker = await api.user([{ verbs: ['get'], resources: ['turns'] }]);
    assert.equal((await api.call('GET', `${path}/notes-1/artifacts`, { token: looker.token })).status, 200);
    const read = await api.call('GET', one, { token: looker.token });
    assert.deepEqual([read.status, read.text.length], [200, 600_000]);
  });
});
