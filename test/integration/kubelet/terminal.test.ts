import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { OnTerminal } from '../../support/on-terminal.ts';
import { exists } from '../../support/processes.ts';
import { skipIf } from '../../support/requires.ts';
import { tools } from '../../support/tools.ts';
import { noTerminals, TestCluster } from './cluster.ts';

const TTY = { stdin: 'true', stderr: 'false', tty: 'true' };

describe('exec on a terminal', skipIf(noTerminals), () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
    await cluster.create('main', 'pwd; sleep 1000', { env: [{ name: 'GREETING', value: 'hi' }] });
    await cluster.phase('main', 'Running');
  });
  afterAll(() => cluster.stop());

  const sh = (script: string, query = {}, protocol?: string) =>
    cluster.exec('main', ['sh', '-c', script], { ...TTY, ...query }, protocol);

  test('has the environment and the directory of the container, a type of terminal, and tells the exit code', async () => {
    const stream = await sh('test -t 2 && echo "$GREETING $TERM" && pwd; exit 3');
    await eventually(() => stream.closed);
    const directory = (await cluster.log('main')).text.trim();
    assert.equal(stream.out, `hi xterm\r\n${directory}\r\n`);
    assert.equal(stream.status?.details?.causes[0]?.message, '3');
  });

  test('takes sizes, sent before the command runs and later, in both protocols', async () => {
    for (const [stdin, protocol] of [
      ['true', 'v5.channel.k8s.io'],
      ['false', 'v4.channel.k8s.io'],
    ] as const) {
      const script =
        'trap "stty size" WINCH; until stty size | grep 41; do sleep 0.01; done; while :; do sleep 0.01; done';
      const stream = await sh(script, { stdin }, protocol);
      stream.resize(41, 111);
      await eventually(() => stream.out.includes('41 111\r\n'));
      stream.resize(50, 222);
      await eventually(() => stream.out.includes('50 222\r\n'));
      stream.close();
    }
  });

  test('has a shell with job control, which Ctrl-C does not end and Ctrl-D does', async () => {
    const stream = await cluster.exec('main', ['sh', '-i'], TTY);
    stream.send('(echo $((600 + 66)); exec sleep 1000)\n');
    await eventually(() => stream.out.includes('666'));
    stream.send('\x03');
    stream.send('echo $((700 + 77)); exit $((4 + 1))\n');
    await eventually(() => stream.closed);
    assert.match(stream.out, /777/);
    assert.ok(!/job control turned off/.test(stream.out), stream.out);
    assert.equal(stream.status?.details?.causes[0]?.message, '5');
    const other = await cluster.exec('main', ['sh', '-i'], TTY);
    other.send('\x04');
    await eventually(() => other.closed);
    assert.equal(other.status?.status, 'Success');
  });

  test('finds the end of its input where the client closes it', async () => {
    const stream = await sh('stty -echo; echo ready; cat; echo over');
    await eventually(() => stream.out === 'ready\r\n');
    stream.send('word\n');
    stream.closeStdin();
    await eventually(() => stream.closed);
    assert.equal(stream.out, 'ready\r\nword\r\nover\r\n');
  });

  test('loses nothing of a megabyte, to a client that does not read for a while', async () => {
    const stream = await sh('stty -onlcr -echo; echo ready; read go; head -c 1000000 /dev/zero; printf end');
    await eventually(() => stream.out === 'ready\n');
    stream.stopReading();
    stream.send('go\n');
    await eventually(async () => (await sh('exit 0')).closed !== undefined);
    stream.readAgain();
    await eventually(() => stream.closed);
    assert.ok(stream.out.endsWith('end'));
    assert.equal(stream.out.length, 'ready\n'.length + 1_000_003);
  });

  test('of a client that goes away is hung up: its shell and the job in the foreground end', async () => {
    const stream = await cluster.exec('main', ['sh', '-i'], TTY);
    stream.send("echo shell=$$; sh -c 'echo job=$$; exec sleep 1000'\n");
    const pid = (name: string) =>
      eventually(() => Number(new RegExp(`${name}=(\\d+)`).exec(stream.out)?.[1]) || undefined);
    const pids = [await pid('shell'), await pid('job')];
    assert.ok(pids.every(exists));
    stream.close();
    await eventually(() => !pids.some(exists));
    assert.equal((await cluster.get('main')).status?.phase, 'Running');
  });

  test('ends with its pod', async () => {
    await cluster.create('brief', 'sleep 1000');
    await cluster.phase('brief', 'Running');
    const stream = await cluster.exec(
      'brief',
      ['sh', '-c', 'trap "" HUP TERM; echo $$; while :; do sleep 1; done'],
      TTY,
    );
    const pid = await eventually(() => Number(stream.out.trim()) || undefined);
    await cluster.delete('brief', 0);
    await eventually(() => stream.closed && !exists(pid));
    assert.equal(stream.status?.details?.causes[0]?.message, '137');
  });

  test('of a program that cannot run fails with a Status that says why', async () => {
    for (const [program, why] of [
      ['no-such-program', 'executable file not found'],
      ['/', 'executable file not found'],
    ]) {
      const stream = await cluster.exec('main', [program as string], TTY);
      await eventually(() => stream.closed);
      assert.match(stream.status?.message ?? '', new RegExp(`exec: "${program}": ${why}`));
    }
  });

  test('of a container that has no terminal itself is refused for attach', async () => {
    await assert.rejects(cluster.attach('main', { tty: 'true' }), /400/);
  });

  describe('with kubectl', () => {
    let kubectl: string;
    let env: { KUBECONFIG: string };
    beforeAll(async () => {
      kubectl = (await tools()).kubectl;
      env = { KUBECONFIG: join(cluster.home, 'kubeconfig') };
      writeFileSync(env.KUBECONFIG, JSON.stringify(cluster.server.kubeconfig('test-admin')));
    });

    test('a shell has the size of the terminal that it is used from, and gives its exit code', async () => {
      const terminal = new OnTerminal(`stty rows 33 cols 77; ${kubectl} exec -it main -- sh; echo code=$?`, env);
      terminal.types('until stty size | grep 33; do :; done\n');
      await terminal.says('33 77');
      terminal.types('(echo $GREETING; exec sleep 1000)\n');
      await terminal.says(/\nhi\r/);
      terminal.types('\x03');
      terminal.types('exit 9\n');
      await terminal.says('code=9');
      assert.equal(await terminal.ended, 0);
    });

    test('without a terminal is refused nothing that it had', async () => {
      const run = promisify(execFile);
      const { stdout } = await run(kubectl, ['exec', 'main', '--', 'sh', '-c', 'test -t 1 || echo "$GREETING"'], {
        env: { ...process.env, ...env },
        timeout: 60_000,
      });
      assert.equal(stdout, 'hi\n');
    });
  });
});

test('where there is no keeper a terminal is refused', async () => {
  const cluster = await TestCluster.start('/nowhere/keeper');
  try {
    await cluster.create('main', 'sleep 1000');
    await cluster.phase('main', 'Running');
    await assert.rejects(cluster.exec('main', ['sh'], TTY), /400/);
    const stream = await cluster.exec('main', ['echo', 'works']);
    await eventually(() => stream.closed);
    assert.equal(stream.out, 'works\n');
  } finally {
    await cluster.stop();
  }
});
