import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { helpersOf, noHelper } from '../../support/helper-run.ts';
import { seededRandom } from '../../support/random.ts';
import { skipIf } from '../../support/requires.ts';
import { Wire } from '../../support/wire.ts';
import { Caller, type Started } from './support.ts';

describe('commands inside a running session', skipIf(noHelper), () => {
  const cwd = mkdtempSync(join(tmpdir(), 'berth-exec-cli-'));
  const work = mkdtempSync(join(tmpdir(), 'berth-exec-work-'));
  const caller = new Caller(cwd);
  let wire: Wire;
  const env = { KUBECONFIG: join(cwd, 'kubeconfig') };
  const exec = (...args: string[]) => caller.berth(['exec', ...args]);
  const session = async (name: string) => {
    const agent = ['--input-as', 'text', '--result', 'text', '--workdir', work, '--', 'sh', '-c', 'eval "$(cat)"'];
    await caller.ok('create', name, ...agent);
    await caller.ok('turn', name, 'true');
  };
  const prints = async ({ child }: Started, what: RegExp) => {
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await eventually(() => what.test(text), { what: String(what) });
  };

  beforeAll(async () => {
    await caller.ok('local', 'up', '--detach');
    await session('notes');
    const config = readFileSync(join(caller.home, 'kubeconfig'), 'utf8');
    const [, port = ''] = /https:\/\/127\.0\.0\.1:(\d+)/.exec(config) ?? assert.fail(config);
    wire = new Wire(Number(port));
    await wire.open();
    writeFileSync(env.KUBECONFIG, config.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${wire.port}`));
  });
  afterAll(async () => {
    wire?.close();
    await caller.berth(['local', 'down']);
    caller.remove();
    for (const folder of [cwd, work]) rmSync(folder, { recursive: true, force: true });
  });

  test('print their streams apart in the agent’s folder, and end with their exit code', async () => {
    const { code, stdout, stderr } = await exec(
      '--env',
      'OWN=a=b',
      'notes',
      '--',
      'sh',
      '-c',
      'pwd; echo "$OWN" >&2; exit 7',
    );
    assert.deepEqual([code, stdout, stderr], [7, `${work}\n`, 'a=b\n']);
    assert.deepEqual((await exec('--cwd', '/', 'notes', '--', 'pwd')).stdout, '/\n');
  });

  test('get the stdin of the caller, to its end', async () => {
    const { code, stdout } = await caller.berth(['exec', '-i', 'notes', '--', 'wc', '-c'], {
      stdin: 'x'.repeat(1_000_000),
    });
    assert.deepEqual([code, stdout.trim()], [0, '1000000']);
    assert.equal((await exec('notes', '--', 'cat')).code, 0, 'without -i the input is empty');
  });

  test('that cannot be started end with 255 and the reason', async () => {
    const { code, stderr } = await exec('notes', '--', 'no-such-program');
    assert.equal(code, 255);
    assert.match(stderr, /^berth: start\.command: "no-such-program" is in no folder of PATH/);
    const none = await exec('none', '--', 'true');
    assert.deepEqual([none.code, /there is no session "none"/.test(none.stderr)], [255, true]);
    const wrong = await exec('--attach', 'x', 'notes', '--', 'true');
    assert.deepEqual([wrong.code, wrong.stderr], [2, 'berth: --attach starts nothing; leave out the program\n']);
  });

  test('print 100 MB while connections are cut again and again: each byte comes once, with the true exit code', async () => {
    const dice = seededRandom(7);
    let left = 2_000_000;
    let cuts = 0;
    wire.onBytes = (count) => {
      left -= count;
      if (left > 0) return;
      left = 1_000_000 + dice.uniform() * 20_000_000;
      cuts += 1;
      wire.cut();
    };
    const script = 'echo started >>starts; seq 1 12000000; exit 3';
    const { child } = caller.start(['exec', 'notes', '--', 'sh', '-c', script], { env });
    const hash = createHash('sha256');
    let bytes = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      bytes += chunk.length;
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    wire.onBytes = () => {};
    const expected = createHash('sha256');
    let length = 0;
    for (let i = 1; i <= 12_000_000; i += 100_000) {
      const part = `${Array.from({ length: 100_000 }, (_, k) => i + k).join('\n')}\n`;
      expected.update(part);
      length += part.length;
    }
    assert.deepEqual([code, bytes, hash.digest('hex')], [3, length, expected.digest('hex')]);
    assert.equal(readFileSync(join(work, 'starts'), 'utf8'), 'started\n');
    assert.ok(cuts > 3, `${cuts} cuts`);
  });

  test('go on and lose nothing when their helpers are killed', async () => {
    const started = caller.start(['exec', 'notes', '--', 'sh', '-c', 'seq 1 3000000; exit 5']);
    let killed = 0;
    let bytes = 0;
    started.child.stdout?.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes < (killed + 1) * 4_000_000) return;
      killed += 1;
      for (const pid of helpersOf(caller.home)) process.kill(pid, 'SIGKILL');
    });
    const { code, stdout } = await started.ended;
    const lines = stdout.split('\n');
    assert.deepEqual([code, lines.length, lines.at(-2)], [5, 3_000_001, '3000000']);
    assert.ok(lines.every((line, i) => i === 3_000_000 || Number(line) === i + 1));
    assert.ok(killed > 0);
  });

  test('get input once, also where the connection is cut while it is sent', async () => {
    let left = 700_000;
    wire.onBytes = (count) => {
      left -= count;
      if (left > 0) return;
      left = 3_000_000;
      wire.cut();
    };
    const input = Array.from({ length: 500_000 }, (_, i) => `${i}\n`).join('');
    const { code, stdout } = await caller.berth(['exec', '-i', 'notes', '--', 'sha256sum'], { stdin: input, env });
    wire.onBytes = () => {};
    assert.deepEqual([code, stdout], [0, `${createHash('sha256').update(input).digest('hex')}  -\n`]);
  });

  test('go on detached; several clients read the same, and the exit is kept until one has it', async () => {
    const id = (
      await caller.ok('exec', '--detach', 'notes', '--', 'sh', '-c', 'mkfifo go; echo a; read -r x <go; echo b; exit 4')
    ).trim();
    assert.match(await caller.ok('exec', '--list', 'notes'), new RegExp(`^${id} +Running, detached `, 'm'));
    for (const flag of ['--attach', '--kill']) {
      const offered = await caller.ok('__complete', '--', 'exec', 'notes', flag, id.slice(0, 4));
      assert.match(offered, new RegExp(`^words\n${id}\tRunning, detached: sh -c mkfifo go; .*\n$`));
    }
    const clients = [1, 2].map(() => caller.start(['exec', '--attach', id, 'notes']));
    await Promise.all(clients.map((client) => prints(client, /a\n/)));
    await exec('notes', '--', 'sh', '-c', 'echo now >go');
    for (const { ended } of clients) assert.equal((await ended).code, 4);
    const late = await exec('--attach', id, 'notes');
    assert.deepEqual([late.code, /kept no more/.test(late.stderr)], [255, true]);
  });

  test('start once under an id of the caller’s', async () => {
    const words = ['--id', 'mine', 'notes', '--', 'sh', '-c', 'echo once >>once; sleep 0.5; exit 6'];
    const both = await Promise.all([exec(...words), exec(...words)]);
    assert.deepEqual(
      both.map(({ code }) => code),
      [6, 6],
    );
    assert.equal(readFileSync(join(work, 'once'), 'utf8'), 'once\n');
  });

  test('hear Ctrl-C, and what they end with then is the exit code', async () => {
    const started = caller.start([
      'exec',
      'notes',
      '--',
      'sh',
      '-c',
      'trap "exit 9" INT; echo ready; while :; do sleep 0.05; done',
    ]);
    await prints(started, /ready/);
    started.child.kill('SIGINT');
    assert.equal((await started.ended).code, 9);
  });

  test('are ended by --kill, also where they ignore SIGTERM', async () => {
    const id = (
      await caller.ok('exec', '--detach', 'notes', '--', 'sh', '-c', 'trap "" TERM; while :; do sleep 1; done')
    ).trim();
    await caller.ok('exec', '--kill', id, 'notes');
    const { code, stderr } = await exec('--attach', id, 'notes');
    assert.deepEqual([code, stderr], [137, `berth: command ${id}: it was ended by a signal of a client\n`]);
  });

  test('keep an idle session until they have ended', async () => {
    const agent = ['--input-as', 'text', '--result', 'text', '--workdir', work, '--', 'sh', '-c', 'true'];
    await caller.ok('create', 'idle', '--idle', '2s', ...agent);
    await caller.ok('turn', 'idle', 'x');
    await caller.ok('exec', '--detach', 'idle', '--', 'sh', '-c', 'sleep 8; echo yes >finished');
    await caller.ok('wait', 'idle', '--for=suspended', '--timeout', '60s');
    assert.equal(readFileSync(join(work, 'finished'), 'utf8'), 'yes\n');
  });

  test('end with their pod when the session is suspended or deleted, and the caller hears why', async () => {
    await session('gone');
    const args = ['exec', 'gone', '--', 'sh', '-c', 'echo ready; exec sleep 1000'];
    const suspended = caller.start(args);
    await prints(suspended, /ready/);
    await caller.ok('suspend', 'gone');
    const first = await suspended.ended;
    assert.equal(first.code, 255);
    assert.match(first.stderr, /the command is lost: session gone was suspended|ended with the session’s pod/);
    const refused = await caller.berth(args);
    assert.deepEqual([refused.code, /is suspended and has no pod/.test(refused.stderr)], [255, true]);
    await caller.ok('turn', 'gone', 'true');
    const deleted = caller.start(args);
    await prints(deleted, /ready/);
    await caller.ok('delete', 'gone', '--yes');
    const second = await deleted.ended;
    assert.equal(second.code, 255);
    assert.match(second.stderr, /was deleted|has ended|ended with the session’s pod/);
  });
});
