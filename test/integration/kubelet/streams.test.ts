import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { isAsleep, processesWith } from '../../support/processes.ts';
import { TestCluster } from './cluster.ts';

describe('attach', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  test('does not repeat what was printed before it, and brings both streams and Success at the end', async () => {
    await cluster.create('late', 'echo before; read a; echo after; echo aside >&2', { stdin: true });
    await eventually(async () => (await cluster.log('late')).text === 'before\n');
    const stream = await cluster.attach('late');
    stream.send('go\n');
    await eventually(() => stream.closed);
    assert.equal(stream.out, 'after\n');
    assert.equal(stream.err, 'aside\n');
    assert.equal(stream.status?.status, 'Success');
  });

  test('of two clients shares one stdin, and both see the output', async () => {
    await cluster.create('shared', 'read a; read b; echo "$a $b"', { stdin: true });
    await cluster.phase('shared', 'Running');
    const one = await cluster.attach('shared');
    const two = await cluster.attach('shared');
    one.send('first\n');
    await new Promise((resolve) => setImmediate(resolve));
    two.send('second\n');
    await eventually(() => one.closed && two.closed);
    assert.deepEqual(one.out.trim().split(' ').sort(), ['first', 'second']);
    assert.equal(two.out, one.out);
  });

  test('that goes away leaves stdin open for the next', async () => {
    await cluster.create('again', 'read a; echo "$a"; read b; echo "$b"', { stdin: true });
    await cluster.phase('again', 'Running');
    const one = await cluster.attach('again');
    one.send('one\n');
    await eventually(() => one.out === 'one\n');
    one.closeStdin();
    one.close();
    const two = await cluster.attach('again', {}, 'v4.channel.k8s.io');
    two.send('two\n');
    await eventually(() => two.closed);
    assert.equal(two.out, 'two\n');
    await cluster.phase('again', 'Succeeded');
  });

  test('of a container with stdinOnce ends its stdin with the client', async () => {
    await cluster.create('once', 'cat; echo end', { stdin: true, stdinOnce: true });
    await cluster.phase('once', 'Running');
    const stream = await cluster.attach('once');
    stream.send('text\n');
    await eventually(() => stream.out === 'text\n');
    stream.closeStdin();
    await eventually(() => stream.closed);
    assert.equal(stream.out, 'text\nend\n');
  });

  test('that is not read blocks the log, other attaches and the process, until it is read or gone', async () => {
    const script = 'read a; head -c 20000000 /dev/zero | tr "\\0" "x" | fold -w 1000; echo done >&2';
    await cluster.create('stalled', script, { stdin: true });
    await cluster.phase('stalled', 'Running');
    const slow = await cluster.attach('stalled');
    const other = await cluster.attach('stalled', { stdin: 'false' });
    slow.stopReading();
    slow.send('go\n');
    // Blocked: they sleep, and a kubelet that reads their output would have read some by the time it answered.
    const { uid } = (await cluster.get('stalled')).metadata;
    const logged = async () => (await cluster.log('stalled')).text.length;
    await eventually(
      async () => {
        const before = await logged();
        return before > 0 && processesWith(uid as string).every(isAsleep) && before === (await logged());
      },
      { what: 'a standstill' },
    );
    assert.ok(other.outBytes < 15_000_000, `${other.outBytes} bytes went by`);
    assert.equal(other.err, '');
    assert.equal((await cluster.get('stalled')).status?.phase, 'Running');

    slow.readAgain();
    await eventually(() => slow.closed && other.closed);
    assert.equal(other.outBytes, 20_019_999);
    assert.equal(slow.outBytes, 20_019_999);
    assert.equal(other.err, 'done\n');
  });

  test('that is not read and then dies no longer blocks the process', async () => {
    const script = 'read a; head -c 8000000 /dev/zero | tr "\\0" "x" | fold -w 1000; echo done >&2';
    await cluster.create('died', script, { stdin: true });
    await cluster.phase('died', 'Running');
    const slow = await cluster.attach('died');
    slow.stopReading();
    slow.send('go\n');
    await eventually(async () => (await cluster.log('died', { limitBytes: '1000' })).text.length === 1000);
    slow.close();
    await cluster.phase('died', 'Succeeded');
    assert.match((await cluster.log('died', { tailLines: '1' })).text, /done|x/);
  });

  test('to a container that does not run fails with a Status that says so', async () => {
    await cluster.create('over', 'true', { stdin: true });
    await cluster.phase('over', 'Succeeded');
    const stream = await cluster.attach('over');
    await eventually(() => stream.closed);
    assert.equal(stream.status?.status, 'Failure');
    assert.match(stream.status!.message!, /container not found \("main"\)/);
  });

  test('to a container the pod does not have is refused with 400', async () => {
    await assert.rejects(cluster.attach('over', { container: 'other' }), /400/);
  });
});

describe('exec', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
    await cluster.create('main', 'sleep 1000', { stdin: true, env: [{ name: 'GREETING', value: 'hi' }] });
    await cluster.phase('main', 'Running');
  });
  afterAll(() => cluster.stop());

  test('runs a command with the environment of the container and ends with Success', async () => {
    const stream = await cluster.exec('main', ['sh', '-c', 'echo "$GREETING"; echo aside >&2']);
    await eventually(() => stream.closed);
    assert.deepEqual([stream.out, stream.err, stream.status?.status], ['hi\n', 'aside\n', 'Success']);
  });

  test('tells a non-zero exit code as a cause', async () => {
    const stream = await cluster.exec('main', ['sh', '-c', 'exit 3']);
    await eventually(() => stream.closed);
    assert.equal(stream.status?.reason, 'NonZeroExitCode');
    assert.equal(stream.status?.details?.causes[0]?.message, '3');
  });

  test('passes stdin and its end, sent before the command runs, to each of many at once', async () => {
    const words = Array.from({ length: 8 }, (_, number) => `word ${number}`);
    const streams = await Promise.all(
      words.map(async (word) => {
        const stream = await cluster.exec('main', ['cat'], { stdin: 'true' });
        stream.send('first ');
        stream.send(word);
        stream.closeStdin();
        return stream;
      }),
    );
    await eventually(() => streams.every((stream) => stream.closed));
    assert.deepEqual(
      streams.map((stream) => stream.out),
      words.map((word) => `first ${word}`),
    );
  });

  test('of a program that does not exist fails with a Status that names it', async () => {
    const stream = await cluster.exec('main', ['no-such-program']);
    await eventually(() => stream.closed);
    assert.equal(stream.status?.status, 'Failure');
    assert.match(stream.status!.message!, /no-such-program/);
  });

  test('whose client goes away takes input and output along, and lets the command run', async () => {
    const script = 'trap "" PIPE; cat; while echo more; do :; done; echo over >"$HOME/told"; exec sleep 1000';
    const stream = await cluster.exec('main', ['sh', '-c', `echo begun; ${script} 2>&1`], { stdin: 'true' });
    await eventually(() => stream.out === 'begun\n');
    stream.close();
    await eventually(async () => {
      const told = await cluster.exec('main', ['sh', '-c', 'cat "$HOME/told"']);
      await eventually(() => told.closed);
      return told.out === 'over\n';
    });
  });
});
