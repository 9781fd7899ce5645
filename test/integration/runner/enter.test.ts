import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type EnterFrame, encodeFrame, encodeJson, FrameDecoder, type FrameKind } from '../../../core/enter/frames.ts';
import type { CommandExit, Wish } from '../../../core/enter/hello.ts';
import type { AgentSpec } from '../../../core/frames/messages.ts';
import { ContainedRunner, noContainer, stageImage } from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { HELPER } from '../../support/helper-run.ts';
import { skipIf } from '../../support/requires.ts';

/**
 * A helper as the kubelet starts it, and a client that speaks with it: in the container's PID namespace its parent is no process, and it has
 * the agent's user, who cannot read its file. `sh` runs before it because setpriv itself can read any file.
 */
class Entered {
  readonly frames: EnterFrame[] = [];
  /** Resolves when nothing more comes. */
  readonly closed: Promise<unknown>;
  readonly #child: ChildProcess;
  readonly #decoder = new FrameDecoder();

  constructor(runner: ContainedRunner, helper: string, hello: Buffer) {
    const { user } = runner;
    const as = ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', '--inh-caps=-all', '--'];
    const program = ['sh', '-c', 'exec "$0"', helper];
    this.#child = spawn('nsenter', ['-t', String(runner.outerPid), '-p', '--', ...as, ...program], {
      env: { PATH: process.env.PATH, BERTH_POD_UID: runner.podUID },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdin?.on('error', () => {});
    this.#child.stdin?.write(hello);
    this.#child.stdout?.on('data', (chunk: Buffer) => this.frames.push(...this.#decoder.push(chunk)));
    this.closed = new Promise((resolve) => this.#child.once('close', resolve));
  }

  send(kind: FrameKind, ...parts: Buffer[]): void {
    this.#child.stdin?.write(encodeFrame(kind, ...parts));
  }

  leave(): void {
    this.#child.stdin?.end();
  }

  /** Resolves once the helper has ended, which may have been stopped: nsenter stops with it and goes on with SIGCONT alone. */
  async ended(): Promise<void> {
    await eventually(() => !this.#child.kill('SIGCONT'), { what: 'nsenter to end' });
    await this.closed;
  }

  /** Output of a command from the position on that it was asked for. */
  get output(): Buffer {
    return Buffer.concat(this.frames.flatMap(({ kind, payload }) => (kind === 'output' ? payload.subarray(9) : [])));
  }

  async answer<T>(kind: FrameKind): Promise<T> {
    const frame = await eventually(() => this.frames.find((each) => each.kind === kind), { what: kind });
    return JSON.parse(frame.payload.toString()) as T;
  }

  /** Resolves with the frames once nothing more comes, as text. */
  async all(): Promise<string[]> {
    await this.closed;
    return this.frames.map(({ kind, payload }) => `${kind} ${payload}`);
  }
}

describe('the way into a session', skipIf(noContainer), () => {
  let image: string;
  let helper: string;
  let runner: ContainedRunner;
  const wantsOf = ({ session }: ContainedRunner, wish: Wish, incarnation = 1) =>
    encodeJson('hello', { protocol: 1, session: session.uid, incarnation, ...wish });
  const wants = (wish: Wish, incarnation = 1) => wantsOf(runner, wish, incarnation);
  const hello = (incarnation = 1) => wants({ want: 'read', root: 'work', path: 'a' }, incarnation);
  const enter = (bytes: Buffer, into = runner) => new Entered(into, helper, bytes);
  /** Whether the runner answers a ping with that clients cannot enter. */
  const isClosed = async (of: ContainedRunner) => {
    const n = of.send('ping', {});
    return (await of.frame('pong', ({ message }) => message.n === n)).message.closedToClients === true;
  };
  const agent: Partial<AgentSpec> = { result: 'Text', input: 'Args', args: ['$(INPUT)'] };
  /** A program of the agent that does something to the socket of its pod, whose name it can see in /proc/net/unix. */
  const atSocket = (code: string) => `python3 -c 'import os, socket\nname = "\\0berth/${runner.podUID}"\n${code}'`;

  beforeAll(async () => {
    image = await stageImage();
    helper = join(image, 'bin', 'berth-enter');
    copyFileSync(HELPER, helper);
    chmodSync(helper, 0o711);
    runner = await ContainedRunner.bound({ image, agent });
    writeFileSync(join(runner.root, 'work', 'a'), 'content');
  });
  afterAll(async () => {
    await runner?.[Symbol.asyncDispose]();
    rmSync(image, { recursive: true });
  });

  test('is open to a process of the kubelet, which finds the runner as PID 1', async () => {
    const frames = await enter(hello()).all();
    assert.deepEqual(
      frames.map((frame) => frame.split(' ')[0]),
      ['ready', 'data', 'end'],
    );
    assert.equal(frames[1], 'data content');
    assert.match((await enter(hello(2)).all())[0] ?? '', /^refused .*PodReplaced/);
  });

  test('a file that a process of the kubelet writes is renamed by the runner, and one that it deletes is gone', async () => {
    const sent = [
      wants({ want: 'write', root: 'work', path: 'new/b' }),
      encodeFrame('data', Buffer.from('sent')),
      encodeFrame('end'),
    ];
    const frames = await enter(Buffer.concat(sent)).all();
    assert.deepEqual(
      frames.map((frame) => frame.split(' ')[0]),
      ['ready', 'end'],
    );
    assert.equal(readFileSync(join(runner.root, 'work', 'new', 'b'), 'utf8'), 'sent');
    const gone = await enter(wants({ want: 'delete', root: 'work', path: 'new', recursive: true })).all();
    assert.match(gone.at(-1) ?? '', /^end /);
    assert.ok(!existsSync(join(runner.root, 'work', 'new')));
  });

  test('is closed to the agent, also where it starts the helper itself', async () => {
    const own = join(runner.root, 'work', 'enter');
    copyFileSync(HELPER, own);
    chmodSync(own, 0o755);
    writeFileSync(join(runner.root, 'work', 'hello'), hello(), { mode: 0o644 });
    const script = `BERTH_POD_UID=${runner.podUID} ${own} < ${runner.root}/work/hello | tr -d '\\000'`;
    for (const started of [script, `setsid sh -c "(${script}) & wait"`]) {
      const { outcome, output } = await runner.runTurn(started);
      assert.equal(outcome, 'Succeeded');
      assert.match(String(output), /NotReady/);
      assert.doesNotMatch(String(output), /content/);
    }
  });

  test('stays the runner’s where the agent listens in its place: the name is taken', async () => {
    const { output } = await runner.runTurn(
      atSocket(`
try:
    socket.socket(socket.AF_UNIX).bind(name)
except OSError as error:
    print(error.strerror)`),
    );
    assert.equal(output, 'Address already in use\n');
    assert.equal((await enter(hello()).all())[1], 'data content');
  });

  test('is closed with a clear error while another process has the name from before the bind, and open once that has left', async () => {
    const late = new ContainedRunner(image, { agent });
    const squatter = createServer((socket) => socket.on('error', () => {}).end(encodeJson('ready', { bytes: 5 })));
    try {
      squatter.listen(`\0berth/${late.podUID}`);
      await late.ready();
      late.bind();
      await late.frame('bound');
      assert.equal((await late.runTurn('echo turns go on')).outcome, 'Succeeded');
      const entered = enter(wants({ want: 'commands' }), late);
      const [refused = '', ...more] = await entered.all();
      assert.match(refused, /^refused .*NotReady.*another process than the runner listens/);
      assert.deepEqual(more, []);
      assert.equal(await isClosed(late), true);
      squatter.close();
      await eventually(async () => !(await isClosed(late)), { what: 'the runner to have its socket' });
      const read = wantsOf(late, { want: 'list', root: 'work', path: '' });
      assert.match((await enter(read, late).all())[0] ?? '', /^ready /);
    } finally {
      squatter.close();
      await late[Symbol.asyncDispose]();
    }
  });

  test('lets clients in while the agent dials again and again and keeps hundreds of connections', async () => {
    const turn = runner.startTurn(
      atSocket(`
held = []
while not os.path.exists("stop"):
    try:
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].connect(name)
    except OSError:
        pass
    if len(held) > 200:
        open("dialled", "w").close()
        held.clear()`),
    );
    await eventually(() => existsSync(join(runner.root, 'work', 'dialled')), { what: 'the agent to dial' });
    const entered = enter(wants({ want: 'command', id: 'beside', start: { command: ['echo', 'hello'] } }));
    assert.equal((await entered.answer<CommandExit>('exit')).code, 0);
    assert.equal(String(entered.output), 'hello\n');
    entered.leave();
    writeFileSync(join(runner.root, 'work', 'stop'), '');
    assert.equal((await runner.result(turn)).outcome, 'Succeeded');
  });

  test('loses no byte of a command, and shows none of another, where the agent stops and kills helpers and unlinks run files', async () => {
    await using own = await ContainedRunner.bound({ image, agent });
    const wait = 'while [ ! -e go ]; do sleep 0.02; done';
    const shell = (id: string, script: string) => {
      const start = { command: ['sh', '-c', script] };
      return enter(wantsOf(own, { want: 'command', id, start }), own);
    };
    // All of it fits into the window of a client that acknowledges nothing.
    const numbers = shell('numbers', `seq 1 500000; ${wait}; echo end; exit 7`);
    const letters = shell('letters', `yes abc | head -n 500000; ${wait}`);
    await eventually(() => numbers.output.length > 0 && letters.output.length > 0, { what: 'output' });
    const toHelpers = async (act: string) => {
      const script = `cd /; for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = berth-enter ] || continue; ${act}; done 2>&1`;
      return String((await own.runTurn(script)).output);
    };

    const looked = await toHelpers('cat $p/environ; cat <$p/fd/0; echo x >$p/fd/1; echo looked');
    assert.equal(looked.match(/looked/g)?.length, 2, looked);
    assert.equal(looked.match(/Permission denied/g)?.length, 6, looked);

    await toHelpers('kill -STOP $(basename $p)');
    const again = enter(wantsOf(own, { want: 'command', id: 'numbers' }), own);
    await again.answer('ready');
    await own.runTurn(`rm -rf ${own.directory('run')}/*`);
    await toHelpers('kill -KILL $(basename $p)');
    const lost = [numbers, letters, again];
    await Promise.all(lost.map((each) => each.ended()));
    assert.ok(lost.every(({ frames }) => frames.every(({ kind }) => kind !== 'exit')));

    writeFileSync(join(own.root, 'work', 'go'), '');
    const counted = Array.from({ length: 500_000 }, (_, i) => `${i + 1}\n`).join('');
    for (const [id, before, whole, code] of [
      ['numbers', numbers, `${counted}end\n`, 7],
      ['letters', letters, 'abc\n'.repeat(500_000), 0],
    ] as const) {
      const rest = enter(wantsOf(own, { want: 'command', id, from: before.output.length }), own);
      assert.equal((await rest.answer<CommandExit>('exit')).code, code);
      assert.ok(`${before.output}${rest.output}` === whole, `the output of ${id} is not what it printed`);
      rest.send('exit');
      await rest.closed;
    }
  });
});
