import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AgentSpec, Limits } from '../../../core/frames/messages.ts';
import { ContainedRunner, noContainer, stageImage } from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';
import { hasKeeper, RunnerHarness } from '../../support/runner-harness.ts';

assert.ok(hasKeeper, 'build the keeper first: make keeper');

const MB = 1_000_000;

const limited = (limits: Partial<Limits>, script: string, agent: Partial<AgentSpec> = {}) =>
  RunnerHarness.bound({
    bind: { limits: { required: true, ...limits } },
    agent: { command: ['/bin/bash', '-c'], args: [script], result: 'Text', ...agent },
  });

/** A program that grows by a megabyte every few milliseconds, to 200 and what Node itself needs. */
const GROW = `exec ${process.execPath} -e '
  const kept = []; setInterval(() => kept.length < 200 && kept.push(Buffer.alloc(1e6, 1)), 2)'`;

/**
 * Waits until the running turn has been seen to use so much, then lets it go on by ending the `sleep 600` that it waits for,
 * so many of them.
 */
async function useSeen(
  runner: RunnerHarness,
  isSeen: (usage: { peakMemoryBytes?: number; processes?: number }) => boolean,
  sleepers = 1,
): Promise<void> {
  await eventually(
    async () => {
      const n = runner.send('ping', {});
      const { message } = await runner.frame('pong', (frame) => frame.message.n === n);
      return isSeen(message.turn?.usage ?? {});
    },
    { what: 'what it uses' },
  );
  const sleeping = () => runner.processes().filter(({ command }) => command === 'sleep 600');
  await eventually(() => sleeping().length === sleepers, { what: 'all that it waits for' });
  for (const { pid } of sleeping()) process.kill(pid);
}

describe('a limit holds from the program’s first instruction', () => {
  test('every number of the class is set', async () => {
    await using runner = await limited(
      { memoryBytes: 400 * MB, cpuSeconds: 30, fileSizeBytes: MB, processes: 10, openFiles: 64, coreBytes: 4096 },
      'cat /proc/self/limits',
    );
    const lines = String((await runner.runTurn()).output).split('\n');
    const of = (name: string) =>
      lines
        .find((line) => line.startsWith(name))
        ?.match(/(\S+)\s+(\S+)\s+\S+\s*$/)
        ?.slice(1, 3);
    assert.deepEqual(of('Max data size'), ['1473741824', '1473741824'], '1 GiB above the memory of all');
    assert.deepEqual(of('Max cpu time'), ['30', '35'], 'SIGXCPU before SIGKILL');
    assert.deepEqual(of('Max file size'), ['1000000', '1000000']);
    assert.deepEqual(of('Max open files'), ['64', '64']);
    assert.deepEqual(of('Max core file size'), ['4096', '4096']);
    assert.equal(lines.find((line) => line.startsWith('Max address space'))?.includes('unlimited'), true);
    assert.ok(Number(lines.find((line) => line.startsWith('Max processes'))?.match(/\d+/)?.[0]) > 10, 'with headroom');
  });

  test('no limit is set where there is none', async () => {
    await using runner = await limited({ required: false }, 'ulimit -d; ulimit -t; ulimit -f');
    assert.equal((await runner.runTurn()).output, 'unlimited\nunlimited\nunlimited\n');
  });

  test('a program that writes a larger file ends with FileSizeLimit', async () => {
    await using runner = await limited({ fileSizeBytes: 100_000 }, 'exec head -c 200000 /dev/zero > $TMPDIR/large');
    const { outcome, error, signal } = await runner.runTurn();
    assert.deepEqual([outcome, error?.code, signal], ['Failed', 'FileSizeLimit', 'SIGXFSZ']);
    assert.match(error?.message ?? '', /100000 bytes \(sandbox\.limits\.fileSize\)/);
  });

  test('a program that uses more CPU time ends with CpuLimit', async () => {
    await using runner = await limited({ cpuSeconds: 1 }, 'while :; do :; done');
    const { error } = await runner.runTurn();
    assert.equal(error?.code, 'CpuLimit');
    assert.match(error?.message ?? '', /more than 1 s of CPU time .*sandbox\.limits\.cpuSeconds/);
  });

  test('CPU time of children counts, however short each lives', async () => {
    const script = 'while :; do for i in {1..20}; do (for j in {1..1000}; do :; done); done; done';
    await using runner = await limited({ cpuSeconds: 1 }, script);
    assert.equal((await runner.runTurn()).error?.code, 'CpuLimit');
  });

  test('CPU time of children counts that their parent takes no notice of', async () => {
    const burn = `import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for i in range(50):
    if os.fork() == 0:
        while time.process_time() < 0.5: pass
        os._exit(0)
    try: os.wait()
    except OSError: pass`;
    await using runner = await limited({ cpuSeconds: 1 }, `exec python3 -c '${burn}'`);
    assert.equal((await runner.runTurn()).error?.code, 'CpuLimit');
  });

  test('a program that opens more files is told so by the kernel', async () => {
    await using runner = await limited(
      { openFiles: 20 },
      'for i in {3..40}; do eval "exec $i</dev/null" || exit 3; done',
    );
    const { exitCode, error } = await runner.runTurn();
    assert.equal(exitCode, 3);
    assert.match(error?.message ?? '', /Too many open files/);
  });

  test('a program that asks for too much memory at once gets none', async () => {
    const script = `exec ${process.execPath} -e 'Buffer.alloc(2e9, 1)'`;
    await using runner = await limited({ memoryBytes: 300 * MB }, script);
    const { outcome, usage } = await runner.runTurn();
    assert.equal(outcome, 'Failed');
    assert.ok((usage?.peakMemoryBytes ?? 0) < 300 * MB, `${usage?.peakMemoryBytes}`);
  });

  test('a program that grows is stopped with MemoryLimit, which names both numbers', async () => {
    await using runner = await limited({ memoryBytes: 150 * MB }, GROW);
    const { outcome, error } = await runner.runTurn();
    assert.deepEqual([outcome, error?.code], ['Failed', 'MemoryLimit']);
    const [used = 0, limit = 0] = error?.message.match(/\d+/g)?.map(Number) ?? [];
    assert.equal(limit, 150 * MB);
    assert.ok(used > limit && used < 2 * limit, `${used}`);
    await eventually(() => runner.processes().length === 0, { what: 'the processes’ end' });
  });

  test('the memory of all processes counts, what they share after a fork once', async () => {
    const share = `kept = bytearray(60000000); import os, time
for i in range(8):
    if os.fork() == 0: time.sleep(1); os._exit(0)
for i in range(8): os.wait()`;
    await using sharing = await limited({ memoryBytes: 150 * MB }, `exec python3 -c '${share}'`);
    assert.equal((await sharing.runTurn()).outcome, 'Succeeded');
    const each = `'kept = bytearray(40000000); import time; time.sleep(60)'`;
    await using many = await limited({ memoryBytes: 150 * MB }, `for i in {1..8}; do python3 -c ${each} & done; wait`);
    assert.equal((await many.runTurn()).error?.code, 'MemoryLimit');
  });

  test('shared memory counts, once', async () => {
    const share = `import mmap, os
kept = mmap.mmap(-1, 60000000)
for i in range(60): kept.write(b"1" * 1000000)
for i in range(8):
    if os.fork() == 0: kept[::4096]; os.system("exec sleep 600"); os._exit(0)
for i in range(8): os.wait()`;
    await using sharing = await limited({ memoryBytes: 150 * MB }, `exec python3 -c '${share}'`);
    const turn = sharing.startTurn();
    // All look as if they had it.
    await useSeen(sharing, ({ peakMemoryBytes = 0 }) => peakMemoryBytes > 300 * MB, 8);
    assert.equal((await sharing.result(turn)).outcome, 'Succeeded');
    const grow = `import mmap, time
kept = mmap.mmap(-1, 300000000)
for i in range(300): kept.write(b"1" * 1000000); time.sleep(0.01)`;
    await using growing = await limited({ memoryBytes: 150 * MB }, `exec python3 -c '${grow}'`);
    assert.equal((await growing.runTurn()).error?.code, 'MemoryLimit');
  });

  test('pages of a file do not count, nor are they blamed when the program fails', async () => {
    const map = `import mmap, sys
file = open("${process.execPath}", "rb")
mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[::4096]
sys.exit("bad flag")`;
    await using runner = await limited({ memoryBytes: 60 * MB }, `exec python3 -c '${map}'`);
    const { error, usage } = await runner.runTurn();
    assert.ok((usage?.peakMemoryBytes ?? 0) > 60 * MB, `${usage?.peakMemoryBytes}`);
    assert.equal(error?.code, 'AgentFailed');
    assert.match(error?.message ?? '', /bad flag/);
  });

  test('Node with its threads and WebAssembly runs within the preset Strict', async () => {
    const program = 'fetch("data:text/plain,works").then((r) => r.text()).then((t) => process.stdout.write(t))';
    await using runner = await limited(
      { memoryBytes: 2 ** 30, cpuSeconds: 300, fileSizeBytes: 100 * MB, processes: 10, openFiles: 1024, coreBytes: 0 },
      `exec ${process.execPath} -e '${program}'`,
    );
    assert.equal((await runner.runTurn()).output, 'works');
  });
});

describe('processes are counted', () => {
  const many = (count: number) => `for i in $(seq ${count}); do sleep 600 & done; `;

  test('a turn with too many ends as TooManyProcesses, all of them are gone, and the next turn runs', async () => {
    const script = `[ "$BERTH_TURN" = turn-1 ] || exit 0; ${many(30)} wait`;
    await using runner = await limited({ processes: 10 }, script);
    const { outcome, error } = await runner.runTurn();
    assert.deepEqual([outcome, error?.code], ['Failed', 'TooManyProcesses']);
    assert.match(error?.message ?? '', /the limit is 10 \(sandbox\.limits\.processes\)/);
    assert.equal((await runner.runTurn()).outcome, 'Succeeded');
    assert.deepEqual(runner.processes(), []);
  });

  test('as many as allowed run', async () => {
    await using runner = await limited({ processes: 10 }, 'for i in {1..9}; do sleep 600 & done; wait; echo done');
    const turn = runner.startTurn();
    await useSeen(runner, ({ processes = 0 }) => processes >= 10, 9);
    const { output, usage } = await runner.result(turn);
    assert.equal(output, 'done\n');
    assert.equal(usage?.processes, 10);
  });

  test('processes that all go on forking end together', async () => {
    // 511 of them at the most, as the machine is shared.
    const script = 'fork() { if (($1 > 0)); then fork $(($1 - 1)) & fork $(($1 - 1)) & fi; sleep 600; }; fork 8';
    await using runner = await limited({ processes: 50 }, script);
    assert.equal((await runner.runTurn()).error?.code, 'TooManyProcesses');
    await eventually(() => runner.processes().length === 0, { what: 'the end of all' });
  });

  test('processes that earlier turns left count too, and the largest family ends', async () => {
    const script = `[ "$BERTH_TURN" = turn-1 ] && { ${many(4)} exit 0; }; ${many(7)} wait`;
    await using runner = await limited({ processes: 10 }, script);
    assert.equal((await runner.runTurn()).outcome, 'Succeeded');
    const left = () => runner.processes().map(({ pid }) => pid);
    await eventually(() => left().length === 4, { what: 'four of them' });
    const earlier = left();
    assert.equal((await runner.runTurn()).error?.code, 'TooManyProcesses');
    assert.deepEqual(left(), earlier, 'the earlier turn’s go on, the others have ended');
  });

  test('processes of a turn that ended at a limit of its own count as well', async () => {
    const large = 'exec head -c 200000 /dev/zero > $TMPDIR/large';
    const script = `[ "$BERTH_TURN" = turn-1 ] && { ${many(4)} ${large}; }; ${many(7)} wait`;
    await using runner = await limited({ processes: 10, fileSizeBytes: 100_000 }, script);
    assert.equal((await runner.runTurn()).error?.code, 'FileSizeLimit');
    assert.equal((await runner.runTurn()).error?.code, 'TooManyProcesses');
  });
});

describe('a limit that cannot be set', () => {
  test('stops the start and is named', async () => {
    await using runner = await limited({ openFiles: 99_999_999_999 }, 'touch $BERTH_STATE_DIR/ran');
    const { outcome, error, state } = await runner.runTurn();
    assert.deepEqual([outcome, error?.code, state], ['Failed', 'LimitNotSet', 'Unchanged']);
    assert.match(error?.message ?? '', /^sandbox\.limits\.openFiles cannot be set \(EPERM\)/);
  });

  test('without a keeper nothing is started that needs one', async () => {
    const bind = (required: boolean) => ({ limits: { required, processes: 1024, coreBytes: 0 } });
    const options = { processGroup: true, agent: { args: ['echo ran'], result: 'Text' as const } };
    await using strict = await RunnerHarness.bound({ ...options, bind: bind(true) });
    const { error } = await strict.runTurn();
    assert.equal(error?.code, 'LimitNotSet');
    assert.match(error?.message ?? '', /no keeper/);
    await using free = await RunnerHarness.bound({ ...options, bind: bind(false) });
    assert.equal((await free.runTurn()).output, 'ran\n');
  });
});

describe('other drivers', () => {
  test('a tool over its limit is an error result; the calls beside it go on', async () => {
    const tool = (name: string, script: string) => ({
      name,
      description: '',
      parameters: { type: 'object' },
      command: ['/bin/bash', '-c', script],
      timeoutMs: 30_000,
    });
    const many = 'for i in {1..7}; do sleep 0.5 & done; wait; echo 1';
    await using runner = await RunnerHarness.bound({
      bind: { limits: { required: true, memoryBytes: 150 * MB, processes: 10 } },
      agent: {
        driver: 'Tools',
        command: [],
        args: [],
        result: 'Json',
        tools: [tool('grow', GROW), tool('many', many)],
        maxParallel: 4,
      },
    });
    const call = (name: string) => ({ tool: name, args: {}, call_id: name });
    const { outcome, output } = await runner.runTurn({
      calls: [call('grow'), { ...call('many'), call_id: 'a' }, { ...call('many'), call_id: 'b' }],
    });
    assert.equal(outcome, 'Succeeded', JSON.stringify(output));
    const results = (output as { results: { status: string; error?: { code: string } }[] }).results ?? output;
    assert.deepEqual(
      (results as { status: string; error?: { code: string } }[]).map(({ status, error }) => error?.code ?? status),
      ['MemoryLimit', 'success', 'success'],
    );
  });

  test('a server over its limit fails its turn, and the next turn gets a new one', async () => {
    const server = `
      const readline = require('node:readline').createInterface({ input: process.stdin });
      const kept = [];
      readline.on('line', (line) => {
        const { id, input } = JSON.parse(line);
        if (input === 'grow') setInterval(() => kept.push(Buffer.alloc(1e6, 1)), 2);
        else if (input === 'burn') { const begin = process.cpuUsage(); while (process.cpuUsage(begin).user < 2e5); answer(id); }
        else answer(id);
      });
      const answer = (id) => console.log(JSON.stringify({ type: 'response', id, timestamp: new Date().toISOString(), result: process.pid }));`;
    await using runner = await RunnerHarness.bound({
      bind: { limits: { required: true, memoryBytes: 250 * MB } },
      agent: { driver: 'Server', command: [process.execPath, '-e', server], args: [] },
    });
    const first = await runner.runTurn();
    assert.equal(first.outcome, 'Succeeded', JSON.stringify(first.error));
    const burn = await runner.runTurn('burn');
    const after = await runner.runTurn();
    assert.equal(after.output, first.output);
    assert.ok((burn.usage?.cpuSeconds ?? 0) > 0.1, `${burn.usage?.cpuSeconds}`);
    assert.ok((after.usage?.cpuSeconds ?? 1) < (burn.usage?.cpuSeconds ?? 0), 'each turn has its own');
    assert.equal((await runner.runTurn('grow')).error?.code, 'MemoryLimit');
    const again = await runner.runTurn();
    assert.equal(again.outcome, 'Succeeded');
    assert.notEqual(again.output, first.output);
  });
});

describe('usage of a turn', () => {
  test('is in its result: time, CPU time, memory, processes', async () => {
    const burn = 'for ((i = 0; i < 100000; i++)); do :; done; sleep 600 & sleep 600; wait';
    await using runner = await limited({ required: false }, burn);
    const turn = runner.startTurn();
    await useSeen(runner, ({ processes = 0 }) => processes >= 3, 2);
    const { usage, startedAt, finishedAt } = await runner.result(turn);
    const wall = Date.parse(finishedAt) - Date.parse(startedAt);
    // The agent's end is reported once its last output was read. Each time is rounded, which may make 2 ms of
    // difference.
    assert.ok((usage?.wallMs ?? 0) >= 50 && (usage?.wallMs ?? 0) <= wall + 2, `${usage?.wallMs} and ${wall}`);
    assert.ok((usage?.cpuSeconds ?? 0) > 0.05 && (usage?.cpuSeconds ?? 9) < 3, `${usage?.cpuSeconds}`);
    assert.ok((usage?.peakMemoryBytes ?? 0) > 500_000, `${usage?.peakMemoryBytes}`);
    assert.equal(usage?.processes, 3);
  });

  test('is exact for the shortest: nothing is sampled', async () => {
    await using runner = await limited({ required: false }, 'exit 0');
    const { usage } = await runner.runTurn();
    assert.ok((usage?.cpuSeconds ?? 0) > 0 && (usage?.cpuSeconds ?? 1) < 0.5, `${usage?.cpuSeconds}`);
    assert.equal(usage?.processes, 1);
    const next = await runner.runTurn();
    assert.ok((next.usage?.cpuSeconds ?? 1) < 0.5 && (next.usage?.cpuSeconds ?? 0) > 0);
  });

  test('is told by pong while it runs', async () => {
    await using runner = await limited({ required: false }, 'while :; do :; done');
    const turn = runner.startTurn();
    await runner.frame('started');
    const used = await eventually(
      async () => {
        const n = runner.send('ping', {});
        const { message } = await runner.frame('pong', (frame) => frame.message.n === n);
        return message.turn?.usage?.cpuSeconds ? message.turn.usage : undefined;
      },
      { what: 'CPU time in pong' },
    );
    assert.ok(used.wallMs > 0 && used.processes === 1);
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    assert.equal((await runner.result(turn)).outcome, 'Cancelled');
  });

  test('is only its time where there is no keeper', async () => {
    await using runner = await RunnerHarness.bound({ processGroup: true, agent: { args: ['true'], result: 'Text' } });
    assert.deepEqual(Object.keys((await runner.runTurn()).usage ?? {}), ['wallMs']);
  });
});

test('a limited program finds its state, and its limits change nothing for the runner', async () => {
  await using runner = await limited({ fileSizeBytes: 1000 }, 'echo kept > $BERTH_STATE_DIR/kept');
  writeFileSync(join(runner.directory('state'), 'large'), 'x'.repeat(100_000));
  const { outcome, state } = await runner.runTurn();
  assert.equal(outcome, 'Succeeded');
  assert.notEqual(state, 'Unchanged');
});

describe('sessions of one user on a node', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));
  const agent = { result: 'Text' as const, input: 'Args' as const, args: ['$(INPUT)'] };

  test('have each their own number of processes: one that is at it takes nothing from the other', async () => {
    const options = { image, agent, bind: { limits: { required: true, processes: 10 } }, processes: 200 };
    await using one = await ContainedRunner.bound(options);
    await using other = await ContainedRunner.bound({ ...options, user: one.user });
    const full = 'for i in {1..9}; do sleep 600 & done; wait; echo done';
    const turns = [one, other].map((runner) => ({ runner, turn: runner.startTurn(full) }));
    for (const { runner } of turns) await useSeen(runner, ({ processes = 0 }) => processes >= 10, 9);
    const results = await Promise.all(turns.map(({ runner, turn }) => runner.result(turn)));
    assert.deepEqual(
      results.map(({ output, usage }) => [output, usage?.processes]),
      [
        ['done\n', 10],
        ['done\n', 10],
      ],
    );
  });

  test('that have taken all the processes of their user keep others from starting, which says so; and no longer than that', async () => {
    await using other = await ContainedRunner.bound({ image, agent });
    assert.equal((await other.runTurn('echo before')).output, 'before\n');
    await using one = await ContainedRunner.bound({ image, agent, processes: 100, user: other.user });
    const turn = one.startTurn(`perl -e 'for (1..70) { sleep 300 if !fork } sleep 300'`);
    await eventually(() => one.others().length > 70, { what: 'all are there' });
    const { outcome, error } = await other.runTurn('echo kept out');
    assert.deepEqual([outcome, error?.code], ['Failed', 'InternalError']);
    assert.match(
      error?.message ?? '',
      /could not be started: (spawn|fork) failed: EAGAIN: .*podPidsLimit.*give the turn again/,
    );
    one.send('cancel', { turn, outcome: 'Cancelled' });
    await one.result(turn);
    assert.equal((await other.runTurn('echo after')).output, 'after\n');
  });
});
