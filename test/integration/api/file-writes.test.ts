import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster, KeptLog, type Rule } from './support.ts';

const FILES = '/v1/namespaces/default/sessions/notes/files';
const WRITE: Rule[] = [{ verbs: ['update', 'delete'], resources: ['sessions/files'] }];
const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest();

describe('files into a session over HTTP', () => {
  let api: ApiCluster;
  let token: string;
  const log = new KeptLog();
  const work = mkdtempSync(join(tmpdir(), 'berth-file-writes-'));
  const there = (...names: string[]) => join(work, ...names);
  const put = (path: string, body: Buffer, headers: Record<string, string> = {}) =>
    api.call('PUT', `${FILES}/${path}`, { token, body, headers });
  const remove = (path: string) => api.call('DELETE', `${FILES}/${path}`, { token });
  const code = async (call: ReturnType<typeof put>) => {
    const { status, problem } = await call;
    return `${status} ${problem.code}`;
  };

  beforeAll(async () => {
    api = await ApiCluster.start({}, undefined, log.logger);
    api.cluster.startController();
    ({ token } = await api.user(WRITE));
    const agent = { ...pythonAgent(`answer(request['input'])`), workingDir: work };
    await api.cluster.create('notes', { agent, persistence: { maxState: '1Mi' } });
    await api.cluster.turn('notes', 'notes-1', 'first');
    const turn = await api.cluster.ended('notes-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
  });
  afterAll(async () => {
    await api.close();
    rmSync(work, { recursive: true });
  });

  test('PUT writes all bytes, with the digest that the client told, and says how long they are kept', async () => {
    const large = randomBytes(20_000_000);
    const digest = { 'repr-digest': `sha-256=:${sha256(large).toString('base64')}:` };
    const answer = await put('work/deep/%C3%BC%20b?mode=600', large, digest);
    assert.equal(answer.status, 200, answer.text);
    const facts = { bytes: large.length, sha256: sha256(large).toString('hex') };
    assert.deepEqual(answer.body, { ...facts, kept: 'Pod', durable: false });
    assert.ok(readFileSync(there('deep', 'ü b')).equals(large));
    assert.equal(statSync(there('deep', 'ü b')).mode & 0o777, 0o600);
    assert.equal((await put('work/deep/%C3%BC%20b', Buffer.from(''))).body.bytes, 0);
    assert.equal(readFileSync(there('deep', 'ü b'), 'utf8'), '');
    assert.equal((await put('state/a', Buffer.from('x'))).body.kept, 'State');
  });

  test('what is not written is refused with the reason', async () => {
    mkdirSync(there('folder'));
    symlinkSync('/tmp', there('out'));
    const x = Buffer.from('x');
    const wrong = { 'repr-digest': `sha-256=:${sha256('y').toString('base64')}:` };
    assert.equal(await code(put('work/new/x', x, wrong)), '422 ContentMismatch');
    assert.equal(await code(put('work/x', x, { 'repr-digest': 'md5=:x:' })), '400 InvalidParameter');
    assert.equal(await code(put('work/x', x, { 'content-range': 'bytes 0-0/2' })), '400 InvalidParameter');
    assert.equal(await code(put('work/x?mode=1777', x)), '400 InvalidParameter');
    assert.equal(await code(put('output/x', x)), '400 InvalidParameter');
    assert.equal(await code(put('workspace/x', x)), '404 FileNotFound');
    assert.equal(await code(put('work/folder', x)), '409 NotAFile');
    assert.equal(await code(put('work/out/berth-x', x)), '403 OutsideRoot');
    assert.equal(await code(put('work/..%2fx', x)), '403 OutsideRoot');
    assert.equal(await code(put('state/large', Buffer.alloc(2 ** 20))), '413 StateTooLarge');
    assert.equal(await code(put('work/x?uid=other', x)), '409 UIDMismatch');
    assert.ok(!existsSync(there('new')) && !existsSync('/tmp/berth-x'));
  });

  test('a body that is cut leaves nothing', async () => {
    const before = readdirSync(work);
    const { port } = new URL(api.url);
    const headers = { authorization: `Bearer ${token}`, 'content-length': '1000000' };
    const client = request({ port, method: 'PUT', path: `${FILES}/work/cut/file`, headers });
    client.on('error', () => {});
    client.write(Buffer.alloc(500_000));
    log.clear();
    await new Promise((resolve) => client.once('socket', (socket) => socket.once('drain', resolve)));
    client.destroy();
    await expect.poll(() => log.entered().length, { timeout: 20_000 }).toBe(1);
    assert.notEqual(log.entered()[0]?.outcome, 'Done');
    await expect.poll(() => readdirSync(work)).toEqual(before);
  });

  test('DELETE removes a file, and a folder only where that is asked for', async () => {
    await put('work/gone/sub/a', Buffer.from('x'));
    assert.equal(await code(remove('work/gone')), '409 NotAFile');
    assert.equal(await code(remove('work/missing')), '404 FileNotFound');
    assert.equal((await remove('work/gone/sub/a')).status, 204);
    assert.deepEqual(readdirSync(there('gone', 'sub')), []);
    assert.equal((await remove('work/gone?recursive')).status, 204);
    assert.ok(!existsSync(there('gone')));
  });

  test('needs the right to update or delete sessions/files', async () => {
    const other = await api.user([{ verbs: ['get'], resources: ['sessions/files'] }]);
    for (const [method, right] of [
      ['PUT', 'update'],
      ['DELETE', 'delete'],
    ] as const) {
      const { status, problem } = await api.call(method, `${FILES}/work/x`, { token: other.token });
      assert.equal(status, 403);
      assert.match(problem.detail, new RegExp(`${right} sessions/files`));
    }
  });

  test('leaves a line with caller, session, bytes and outcome, and without path or content', async () => {
    log.clear();
    await put('work/named', Buffer.from('content'));
    const [line = {}] = log.entered();
    const { user, requestId, ...facts } = line;
    assert.deepEqual(facts, {
      namespace: 'default',
      session: 'notes',
      want: 'write',
      root: 'work',
      outcome: 'Done',
      bytes: 7,
    });
    assert.doesNotMatch(JSON.stringify(log.lines), /named|content/);
  });
});
