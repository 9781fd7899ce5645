import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { TestCluster } from './cluster.ts';

describe('the log of a pod', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  test('follows while the container runs and ends with it', async () => {
    const pieces: string[] = [];
    await cluster.create('follow', 'echo one; read a; echo two', { stdin: true });
    await cluster.phase('follow', 'Running');
    const following = cluster.follow('follow', pieces);
    await eventually(() => pieces.join('') === 'one\n');
    (await cluster.attach('follow')).send('\n');
    await following;
    assert.equal(pieces.join(''), 'one\ntwo\n');
  });

  test('serves the tail, a limit, timestamps, and what came since a moment', async () => {
    await cluster.create('lines', 'seq 1 5000; printf unfinished');
    await cluster.phase('lines', 'Succeeded');
    assert.equal((await cluster.log('lines', { tailLines: '3' })).text, '4999\n5000\nunfinished');
    assert.equal((await cluster.log('lines', { tailLines: '0' })).text, '');
    assert.equal((await cluster.log('lines', { limitBytes: '5' })).text, '1\n2\n3');
    const stamped = (await cluster.log('lines', { timestamps: 'true', tailLines: '2' })).text.split('\n');
    assert.match(stamped[0]!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z 5000$/);
    const future = new Date(Date.now() + 60_000).toISOString();
    assert.equal((await cluster.log('lines', { sinceTime: future })).text, '');
    assert.equal((await cluster.log('lines', { sinceSeconds: '600', tailLines: '1' })).text, 'unfinished');
  });

  test('keeps long lines and odd bytes as they were', async () => {
    await cluster.create('long', 'head -c 100000 /dev/zero | tr "\\0" "y"; echo; printf "caf\\303\\251\\n"');
    await cluster.phase('long', 'Succeeded');
    assert.equal((await cluster.log('long')).text, `${'y'.repeat(100_000)}\ncafé\n`);
  });

  test('is bounded: past 10 MiB only the newest part is served, and a follower misses nothing', async () => {
    const script = 'read a; seq -f "%019.0f" 1 1000000; echo end';
    await cluster.create('big', script, { stdin: true });
    await cluster.phase('big', 'Running');
    const pieces: string[] = [];
    const following = cluster.follow('big', pieces);
    (await cluster.attach('big', { stdout: 'false', stderr: 'false' })).send('\n');
    await following;
    const followed = pieces.join('');
    assert.ok(followed.endsWith('0000000000001000000\nend\n'));
    const { text } = await cluster.log('big');
    assert.ok(text.length < 10 * 1024 * 1024, `${text.length} bytes`);
    assert.ok(text.endsWith('\nend\n'));
  });

  test('of a container that has not begun is 400 and says what it waits for', async () => {
    await cluster.create('none', '', { image: 'unknown.example/image' });
    const { status, text } = await eventually(async () => {
      const answer = await cluster.log('none');
      return answer.text.includes('ErrImagePull') || answer.text.includes('BackOff') ? answer : undefined;
    });
    assert.equal(status, 400);
    assert.match(text, /container \\"main\\" in pod \\"none\\" is waiting to start/);
  });

  test('refuses parameters it does not understand with 400', async () => {
    assert.equal((await cluster.log('lines', { tailLines: '-1' })).status, 400);
    assert.equal((await cluster.log('lines', { sinceTime: 'yesterday' })).status, 400);
    assert.equal((await cluster.log('lines', { container: 'other' })).status, 400);
    assert.equal((await cluster.log('lines', { previous: 'true' })).status, 400);
  });
});
