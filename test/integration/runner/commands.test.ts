import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { type EnterFrame, encodeFrame, encodeJson, FrameDecoder, positionBytes } from '../../../core/enter/frames.ts';
import type { CommandExit, CommandStart, Wish } from '../../../core/enter/hello.ts';
import type { Pong } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';
import { noKeeper, RunnerHarness } from '../../support/runner-harness.ts';

/** A client at the socket of a runner, in place of the helper. */
class Client {
  readonly frames: EnterFrame[] = [];
  readonly socket: Socket;
  isOver = false;
  readonly #decoder = new FrameDecoder();

  constructor(runner: RunnerHarness, wish: Wish) {
    this.socket = connect(`\0berth/${runner.podUID}`);
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.isOver = true;
    });
    this.socket.on('data', (chunk: Buffer) => this.frames.push(...this.#decoder.push(chunk)));
    this.socket.write(encodeJson('hello', { protocol: 1, session: runner.session.uid, incarnation: 1, ...wish }));
  }

  static start(runner: RunnerHarness, id: string, script: string, more: Partial<CommandStart> = {}): Client {
    const start = { command: ['sh', '-c', script], ...more };
    return new Client(runner, { want: 'command', id, start, input: start.stdin === true });
  }

  get output(): string {
    const outputs = this.frames.filter(({ kind }) => kind === 'output');
    return outputs.map(({ payload }) => payload.subarray(9).toString()).join('');
  }

  /** The answer of a kind, as soon as it comes. */
  async answer<T>(kind: EnterFrame['kind']): Promise<T> {
    const frame = await eventually(() => this.frames.find((each) => each.kind === kind), { what: kind });
    return JSON.parse(frame.payload.toString()) as T;
  }

  prints(what: RegExp): Promise<unknown> {
    return eventually(() => what.test(this.output), { what: String(what) });
  }
}

async function pong(runner: RunnerHarness): Promise<Pong> {
  const n = runner.send('ping', {});
  return (await runner.frame('pong', ({ message }) => message.n === n)).message;
}

const isStopped = (pid: string) => /\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

describe('commands of a runner', skipIf(noKeeper), () => {
  test('run beside a turn, whose usage and result know nothing of them, and may say nothing for it', async () => {
    const script = 'while [ ! -e go ]; do sleep 0.02; done; echo done';
    await using runner = await RunnerHarness.bound({ agent: { args: [script], result: 'Text' } });
    const turn = runner.startTurn();
    await runner.frame('started');
    const memory = 'x=$(head -c 60000000 /dev/zero | tr "\\0" a)';
    const client = Client.start(runner, 'c', `berth-agent event 1; berth-agent touch && ${memory}; touch go; echo $?`);
    assert.equal((await client.answer<CommandExit>('exit')).code, 0);
    assert.match(client.output, /0\n$/);
    const { outcome, output, usage } = await runner.result(turn);
    assert.deepEqual([outcome, output], ['Succeeded', 'done\n']);
    assert.ok((usage?.peakMemoryBytes ?? 0) < 50_000_000, `${usage?.peakMemoryBytes}`);
    assert.deepEqual(runner.agentEvents(), []);
    assert.equal(existsSync(join(runner.directory('run'), 'cmd.sock')), true);
  });

  test('keep their session from being idle, and report nothing where none has run', async () => {
    await using runner = await RunnerHarness.bound();
    assert.equal((await pong(runner)).commandIdleMs, undefined);
    const client = Client.start(runner, 'c', 'read -r line', { stdin: true });
    await client.answer('ready');
    assert.equal((await pong(runner)).commandIdleMs, 0);
    client.socket.write(encodeFrame('inputEnd', positionBytes(0)));
    await client.answer('exit');
    assert.ok(((await pong(runner)).commandIdleMs ?? -1) >= 0);
  });

  test('stand still from suspend to resume, also while the state is packed, and none is started meanwhile', async () => {
    await using runner = await RunnerHarness.bound();
    const client = Client.start(runner, 'c', 'echo $$; while :; do date +%s%N >state; sleep 0.01; done');
    await client.prints(/\d+\n/);
    const pid = client.output.trim();
    runner.send('suspend', {});
    runner.send('snapshot', {});
    await runner.frame('state');
    await eventually(() => isStopped(pid), { what: 'the command to stand' });
    const late = Client.start(runner, 'late', 'true');
    assert.match(JSON.stringify(await late.answer('refused')), /Suspended/);
    runner.send('resume', {});
    await eventually(() => !isStopped(pid), { what: 'the command to go on' });
    assert.equal(client.isOver, false);
  });

  test('end with the pod: the client hears it, and no process is left, also where they ignore SIGTERM', async () => {
    await using runner = await RunnerHarness.bound();
    const client = Client.start(runner, 'c', 'trap "" TERM; echo ready; while :; do sleep 1; done');
    await client.prints(/ready/);
    runner.send('shutdown', { graceMs: 100 });
    assert.equal((await client.answer<CommandExit>('exit')).reason, 'PodEnd');
    await runner.exited;
    await eventually(() => runner.processes().length === 0, { what: 'no process' });
  });

  test('end with a runner that is killed', async () => {
    await using runner = await RunnerHarness.bound();
    const client = Client.start(runner, 'c', '(setsid sleep 1000 &); echo ready; exec sleep 1000', { detach: true });
    await client.prints(/ready/);
    runner.child.kill('SIGKILL');
    await eventually(() => runner.processes().length === 0, { what: 'no process' });
  });
});
