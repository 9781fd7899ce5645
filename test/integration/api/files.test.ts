import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { get } from 'node:http';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { unlike } from '../../support/documented.ts';
import { pythonAgent } from '../../support/installation.ts';
import { ApiCluster, EVERYTHING, KeptLog, type Rule } from './support.ts';

const FILES = '/v1/namespaces/default/sessions/notes/files';
const READ: Rule[] = [{ verbs: ['get'], resources: ['sessions/files'] }];
const MiB = 1024 * 1024;

/** Writes files below its working directory, as its input says: contents in hex by path. */
const agent = pythonAgent(`
for path, content in request['input'].items():
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'wb') as file: file.write(bytes.fromhex(content))
os.symlink('/etc/passwd', 'out')
os.mkfifo('pipe')
answer('written')
`);

describe('files of a session over HTTP', () => {
  let api: ApiCluster;
  let token: string;
  const log = new KeptLog();
  const large = randomBytes(3 * MiB);
  beforeAll(async () => {
    api = await ApiCluster.start({}, undefined, log.logger);
    api.cluster.startController();
    ({ token } = await api.user(READ));
    await api.cluster.create('notes', { agent });
    const files = { 'a.txt': Buffer.from('hello'), 'deep/ü b': Buffer.from('deep'), empty: Buffer.alloc(0) };
    const input = Object.fromEntries(Object.entries(files).map(([path, bytes]) => [path, bytes.toString('hex')]));
    await api.cluster.turn('notes', 'notes-1', input);
    const turn = await api.cluster.ended('notes-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
  });
  afterAll(() => api.close());

  test('come whole, with their length, and by parts', async () => {
    const whole = await api.call('GET', `${FILES}/work/a.txt`, { token });
    assert.deepEqual([whole.status, whole.text], [200, 'hello'], whole.text);
    assert.equal(whole.headers.get('content-length'), '5');
    assert.equal(whole.headers.get('berth-file-type'), 'file');
    assert.match(whole.headers.get('content-security-policy') ?? '', /^sandbox/);
    const part = await api.call('GET', `${FILES}/work/a.txt`, { token, headers: { range: 'bytes=1-2' } });
    assert.deepEqual([part.status, part.text, part.headers.get('content-range')], [206, 'el', 'bytes 1-2/5']);
    const beyond = await api.call('GET', `${FILES}/work/a.txt`, { token, headers: { range: 'bytes=5-' } });
    assert.deepEqual([beyond.status, beyond.problem.code], [416, 'RangeNotSatisfiable']);
    assert.equal((await api.call('GET', `${FILES}/work/deep/${encodeURIComponent('ü b')}`, { token })).text, 'deep');
    assert.equal((await api.call('GET', `${FILES}/work/empty`, { token })).text, '');
  });

  test('are described by HEAD', async () => {
    const { status, headers, text } = await api.call('HEAD', `${FILES}/work/a.txt`, { token });
    assert.deepEqual(
      [status, headers.get('content-length'), headers.get('berth-file-type'), text],
      [200, '5', 'file', ''],
    );
    assert.ok(Date.parse(headers.get('last-modified') ?? '') > 0);
    assert.equal((await api.call('HEAD', `${FILES}/work`, { token })).headers.get('berth-file-type'), 'folder');
    assert.equal((await api.call('HEAD', `${FILES}/work/missing`, { token })).status, 404);
  });

  test('are described by an entry', async () => {
    const { body, headers } = await api.call('GET', `${FILES}/work/a.txt?as=entry`, { token });
    assert.deepEqual([body.name, body.type, body.bytes], ['a.txt', 'file', 5]);
    assert.equal(headers.get('etag'), `"${body.version}"`);
    assert.deepEqual(unlike('PathEntry', body), []);
    assert.notDeepEqual(unlike('PathEntry', { items: [] }), []);
    const list = await api.call('GET', `${FILES}/work?as=list`, { token });
    assert.deepEqual(unlike('FileList', list.body), []);
  });

  test('of a folder are listed', async () => {
    for (const path of ['work', 'work/']) {
      const { body } = await api.call('GET', `${FILES}/${path}?as=list`, { token });
      assert.deepEqual(
        body.items.map(({ name, type, bytes }: Record<string, unknown>) => [name, type, bytes]).toSorted(),
        [
          ['a.txt', 'file', 5],
          ['deep', 'folder', 0],
          ['empty', 'file', 0],
          ['out', 'link', 0],
          ['pipe', 'other', 0],
        ],
      );
    }
    assert.deepEqual((await api.call('GET', `${FILES}/work/deep?as=list`, { token })).body.items.length, 1);
  });

  test('of a folder come as one tar, whose trailers say what it does not have', async () => {
    const { bytes, trailers } = await new Promise<{ bytes: Buffer; trailers: NodeJS.Dict<string> }>((resolve, reject) =>
      get(`${api.url}${FILES}/work?as=tar`, { headers: { authorization: `Bearer ${token}` } }, (answer) => {
        answer.toArray().then((chunks) => resolve({ bytes: Buffer.concat(chunks), trailers: answer.trailers }), reject);
      }),
    );
    assert.ok(bytes.includes('ustar') && bytes.includes('hello') && bytes.length % 512 === 0);
    assert.match(trailers['repr-digest'] ?? '', /^sha-256=:.{44}:$/);
    assert.equal(trailers['berth-file-problem-count'], '1');
    const problems: unknown[] = JSON.parse(trailers['berth-file-problems'] ?? '');
    assert.deepEqual(problems, [{ name: 'pipe', reason: 'Pipe' }]);
    for (const problem of problems) assert.deepEqual(unlike('FileProblem', problem), []);
  });

  test('that cannot be had are refused with the reason', async () => {
    const code = async (path: string, as: string) => {
      const { status, problem } = await api.call('GET', `${FILES}/${path}?as=${as}`, { token });
      return `${status} ${problem.code}`;
    };
    assert.equal(await code('work/missing', 'file'), '404 FileNotFound');
    assert.equal(await code('work/deep', 'file'), '409 NotAFile');
    assert.equal(await code('work/a.txt', 'list'), '409 NotAFolder');
    assert.equal(await code('work/a.txt', 'tar'), '409 NotAFolder');
    assert.equal(await code('work/out', 'file'), '403 OutsideRoot');
    assert.equal(await code('work/..%2f..%2fetc%2fpasswd', 'file'), '403 OutsideRoot');
    assert.equal(await code('work/a%00b', 'file'), '400 InvalidParameter');
    assert.equal(await code('etc/passwd', 'file'), '400 InvalidParameter');
    assert.equal(await code(`work/${'n'.repeat(300)}`, 'file'), '422 Invalid');
    assert.equal(await code('agent', 'list'), '404 FileNotFound');
    const { problem } = await api.call('GET', `${FILES}/work/a.txt?uid=other`, { token });
    assert.equal(problem.code, 'UIDMismatch');
    const path = FILES.replace('notes', 'nobody');
    assert.equal((await api.call('GET', `${path}/work?as=list`, { token })).problem.code, 'NotFound');
  });

  test('need the right to sessions/files, and no other right', async () => {
    const other = await api.user(EVERYTHING);
    const { status, problem } = await api.call('GET', `${FILES}/work/a.txt`, { token: other.token });
    assert.deepEqual([status, problem.code], [403, 'Forbidden']);
    assert.match(problem.detail, /get sessions\/files/);
  });

  test('leave a line with caller, session and outcome, and without path or content', async () => {
    log.clear();
    const answer = await api.call('GET', `${FILES}/work/a.txt`, { token });
    await api.call('GET', `${FILES}/work/missing`, { token });
    const entered = log.entered();
    assert.deepEqual(
      entered.map(({ user, requestId, ...facts }) => facts),
      [
        { namespace: 'default', session: 'notes', want: 'read', root: 'work', outcome: 'Done', bytes: 5 },
        { namespace: 'default', session: 'notes', want: 'read', root: 'work', outcome: 'FileNotFound', bytes: 0 },
      ],
    );
    assert.equal(entered[0]?.requestId, answer.headers.get('x-request-id'));
    assert.match(String(entered[0]?.user), /^system:serviceaccount:default:user-/);
    assert.doesNotMatch(JSON.stringify(log.lines), /a\.txt|hello/);
  });

  test('of a large size come as they are', async () => {
    await api.cluster.create('large', { agent });
    await api.cluster.turn('large', 'large-1', { large: large.subarray(0, 40_000).toString('hex') });
    await api.cluster.ended('large-1');
    const answer = await fetch(`${api.url}${FILES.replace('notes', 'large')}/work/large`, {
      headers: { authorization: `Bearer ${token}` },
    });
    assert.ok(large.subarray(0, 40_000).equals(Buffer.from(await answer.arrayBuffer())));
  });

  test('of a session without a pod are refused with the reason', async () => {
    await api.cluster.create('asleep', { agent, suspend: true });
    const { status, problem } = await api.call('GET', `${FILES.replace('notes', 'asleep')}/work?as=list`, { token });
    assert.equal(status, 409);
    assert.ok(['NotReady', 'Suspended'].includes(problem.code), problem.code);
  });
});
