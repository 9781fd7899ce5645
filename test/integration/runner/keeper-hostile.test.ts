import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ContainedRunner, containedCommand, noContainer, stageImage } from '../../support/contained-runner.ts';
import { eventually } from '../../support/eventually.ts';
import { skipIf } from '../../support/requires.ts';
import { hasKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

assert.ok(hasKeeper, 'build the keeper first: make keeper');

const KEEPER = join(import.meta.dirname, '..', '..', '..', 'build', 'keeper');
const TEXT = { result: 'Text' as const };
/** exit(2) of the main thread alone; the process is a zombie by its state, and lives. */
const thread = (body: string) =>
  `perl -Mthreads -MPOSIX=uname -e 'threads->create(sub { ${body} }); syscall((uname)[4] eq "x86_64" ? 60 : 93, 0)'`;

describe('an agent that takes its keeper’s open files', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));

  test('fails its turn, nobody is left, and the next turn runs', async () => {
    const agent = { ...TEXT, input: 'Args' as const, args: ['$(INPUT)'] };
    await using runner = await ContainedRunner.bound({ image, agent });
    const daemon = 'setsid setsid sleep 300 >/dev/null 2>&1 & sleep 0.1;';
    const { outcome, error } = await runner.runTurn(`${daemon} prlimit --pid $PPID --nofile=0:0; sleep 300`);
    assert.deepEqual([outcome, error?.code], ['Failed', 'InternalError']);
    assert.match(error?.message ?? '', /^the keeper could not look at the agent's processes .*\(E[A-Z]+\)/);
    await eventually(() => runner.others().length === 0, { what: 'nobody is left' });
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });
});

test(
  'a program that cannot be executed takes nobody with it whom an earlier turn left',
  skipIf(noContainer),
  async () => {
    const image = await stageImage();
    const program = join(image, 'program');
    const write = (text: string) => writeFileSync(program, text, { mode: 0o755 });
    try {
      await using runner = await ContainedRunner.bound({ image, agent: { ...TEXT, command: [program], args: [] } });
      write('#!/bin/bash\nsleep 300 >/dev/null 2>&1 & echo left');
      assert.equal((await runner.runTurn()).leftRunning.length, 1);
      write('no program');
      assert.equal((await runner.runTurn()).error?.code, 'CommandNotExecutable');
      write('#!/bin/bash\nexit 0');
      assert.equal((await runner.runTurn()).outcome, 'Succeeded');
      // The keeper of the last turn ends when the runner has heard from it.
      const nameOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0];
      const left = () => runner.others().map(nameOf).sort().join();
      await eventually(() => left() === `${join(image, 'keeper')},sleep`, {
        what: 'the one that is left, and its keeper',
      });
    } finally {
      rmSync(image, { recursive: true });
    }
  },
);

describe('a keeper with too few open files to wait for anything or to read a process', () => {
  const take = 'prlimit --pid $PPID --nofile=3:1024';

  test('does not say that nobody is left', async () => {
    const keeper = spawnKeeper(['/bin/bash', 'bash', '-c', `${take}; sleep 300`]);
    const giveUp = setTimeout(() => keeper.child.kill('SIGKILL'), 60_000);
    assert.equal(await keeper.closed, 1);
    clearTimeout(giveUp);
    assert.doesNotMatch(keeper.said, /^empty$/m);
    assert.match(keeper.said, /^blind \d+$/m);
  });

  test('waits for the end of a temporary shortage: its agent goes on', async () => {
    const script = `${take}; sleep 0.7; prlimit --pid $PPID --nofile=1024:1024; sleep 0.3; echo done`;
    // The keeper waits for two seconds. On a busy machine the agent may not end the shortage by then.
    const keeper = await longEnough(
      async () => {
        const keeper = spawnKeeper(['/bin/bash', 'bash', '-c', script]);
        await eventually(() => keeper.child.exitCode !== null || /^empty$/m.test(keeper.said), { what: 'its end' });
        keeper.control.end();
        await keeper.closed;
        return keeper;
      },
      ({ said }) => /^exit 0\b/m.test(said),
    );
    assert.match(keeper.said, /^exit 0\b/m);
    assert.equal(keeper.output, 'done\n');
  });
});

describe('a container', skipIf(noContainer), () => {
  let image: string;
  beforeAll(async () => {
    image = await stageImage();
  });
  afterAll(() => rmSync(image, { recursive: true }));
  const agent = { ...TEXT, input: 'Args' as const, args: ['$(INPUT)'] };

  test('’s agent runs at a lower priority than its keeper and its runner; elsewhere it has the priority that these have', async () => {
    await using contained = await ContainedRunner.bound({ image, agent });
    assert.equal((await contained.runTurn('nice')).output, `${Math.min(getPriority() + 10, 19)}\n`);
    await using runner = await RunnerHarness.bound({ agent });
    assert.equal((await runner.runTurn('nice')).output, `${getPriority()}\n`);
  });

  test('’s hundreds of processes that each make a session of their own and go on forking are ended above their limit', async () => {
    const bomb = '$SIG{CHLD} = "IGNORE"; while (1) { setsid if defined(my $p = fork) && !$p }';
    const bind = { limits: { required: true, processes: 100 } };
    await using runner = await ContainedRunner.bound({ image, agent, bind, processes: 400 });
    const { error } = await runner.runTurn(`exec perl -MPOSIX -e '${bomb}'`);
    assert.equal(error?.code, 'TooManyProcesses');
    await eventually(() => runner.others().length === 0, { what: 'nobody is left' });
    assert.equal((await runner.runTurn('echo next')).output, 'next\n');
  });

  test('’s processes are all stopped while hundreds of new ones are read, and those within their limits continue', async () => {
    const tool = (name: string, timeoutMs: number, script: string) => ({
      ...{ name, description: '', parameters: { type: 'object' } },
      command: ['/bin/bash', '-c', script],
      timeoutMs,
    });
    // No look between them: their keeper is stopped. The runner has just continued it, and does so once a second. A look then
    // finds more new ones than the limit, or leaves so many for the next.
    const stop = 'sub stopped { open my $f, "<", "/proc/$k/stat"; <$f> =~ /\\) T/ } kill "STOP", $k until stopped;';
    const go = 'select undef, undef, undef, 0.01 while stopped;';
    const fork = 'for (1..640) { kill "STOP", $k if $_ % 20 == 1; sleep 300 if !fork } kill "CONT", $k; sleep 300';
    const attempt = async (limitMs: number) => {
      await using runner = await ContainedRunner.bound({
        image,
        bind: { limits: { required: true, processes: 300 } },
        agent: {
          ...{ driver: 'Tools', command: [], args: [], result: 'Json', maxParallel: 2 },
          tools: [
            tool('many', 120_000, `exec perl -e 'our $k = getppid; ${stop} ${go} ${fork}'`),
            tool('held', 4 * limitMs, 'trap "held=1" CONT; until [ "$held" ]; do sleep 0.1; done; echo 1'),
          ],
        },
        processes: 800,
      });
      const call = (name: string) => ({ tool: name, args: {}, call_id: name });
      const { output } = await runner.runTurn({ calls: [call('held'), call('many')] });
      const { results } = output as { results: { status: string; error?: { code: string } }[] };
      return results.map(({ status, error }) => error?.code ?? status);
    };
    // A busy machine may split the forks over several scans of the keeper, none of which finds more than the limit.
    const ended = await longEnough(attempt, ([held]) => held === 'success');
    assert.deepEqual(ended, ['success', 'TooManyProcesses']);
  });
});

test(
  'a keeper that has stopped all processes for its last read continues them, although its own are gone',
  skipIf(noContainer),
  async () => {
    // Hundreds of new processes for the price of folders: the keeper reads a /proc that the test fills.
    const { command } = containedCommand([]);
    const namespace = command.slice(0, command.indexOf('--') + 1);
    const asUser = command.slice(namespace.length).join(' ');
    const script = `${asUser} bash -c 'trap "echo continued" CONT; echo up; while :; do sleep 0.05; done' </dev/null 3>&- &
    mount -t tmpfs tmpfs /proc
    ${asUser} "$0" processes=1,contained=1 /bin/true true </dev/null >/dev/null &
    read -r _ && mkdir $(seq -f /proc/%.0f 100001 100300) && echo made && read -r _`;
    const folder = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
    const keeper = join(folder, 'keeper');
    chmodSync(folder, 0o755);
    copyFileSync(KEEPER, keeper);
    const [unshare = '', ...args] = [...namespace, 'sh', '-c', script, keeper];
    const inside = followed(spawn(unshare, args, { stdio: ['pipe', 'pipe', 'inherit', 'pipe'] }));
    try {
      await eventually(() => inside.output === 'up\n' && /^empty$/m.test(inside.said), {
        what: 'the end of the family',
      });
      inside.child.stdin?.write('\n');
      await eventually(() => inside.output.endsWith('made\n'), { what: 'all that are new' });
      inside.control.write('L');
      await eventually(() => inside.output.endsWith('continued\n'), { what: 'another that goes on' });
      await eventually(() => /^listed \d+ \d+$/m.test(inside.said), { what: 'the answer' });
    } finally {
      inside.child.kill('SIGKILL');
      await inside.closed;
      rmSync(folder, { recursive: true });
    }
  },
);

describe('a process whose main thread has ended', () => {
  for (const processGroup of [false, true]) {
    test(`is named and stopped, by ${processGroup ? 'process group' : 'keeper'}`, async () => {
      const args = [`${thread('sleep 300')} >/dev/null 2>&1 & while ! grep -q Z /proc/$!/stat; do :; done; echo $!`];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { ...TEXT, args } });
      const { output, leftRunning } = await runner.runTurn();
      const pid = Number(output);
      assert.deepEqual(leftRunning, [{ pid, command: 'perl' }]);
      runner.send('shutdown', { graceMs: 1000 });
      await runner.exited;
      await eventually(() => !isThere(pid), { what: 'its end' });
    });
  }

  test('has its memory counted', async () => {
    const grow = 'my @kept; for (1..300) { push @kept, "x" x 1e6; select undef, undef, undef, 0.005 } sleep 300';
    await using runner = await RunnerHarness.bound({
      bind: { limits: { required: true, memoryBytes: 100_000_000 } },
      agent: { ...TEXT, args: [`exec ${thread(grow)}`] },
    });
    assert.equal((await runner.runTurn()).error?.code, 'MemoryLimit');
  });
});

test('a process that an agent starts at SIGTERM to save its work is not stopped', async () => {
  // Each time it is told it starts a process, and says whether that one was told as well.
  const script = `$| = 1; $SIG{TERM} = sub { $told = 1 }; print "up\\n";
    while (1) {
      select undef, undef, undef, 0.02 until $told;
      $told = 0;
      my $child = fork;
      if (!$child) { select undef, undef, undef, 0.03; exit $told }
      waitpid $child, 0;
      print $? ? "told\\n" : "left alone\\n";
    }`;
  const agent = spawnKeeper(['/usr/bin/perl', 'perl', '-e', script]);
  try {
    for (let round = 0; round < 50; round++) {
      await eventually(() => agent.output.split('\n').length === round + 2, { what: `the end of round ${round}` });
      agent.control.write('T');
    }
    assert.doesNotMatch(agent.output, /told/);
  } finally {
    agent.control.end();
    await agent.closed;
  }
});

/** A keeper without limits; what it and its program say, and its exit code. */
function spawnKeeper(program: string[]) {
  return followed(spawn(KEEPER, ['-', ...program], { stdio: ['pipe', 'pipe', 'ignore', 'pipe'] }));
}

function followed(child: ChildProcess) {
  const control = child.stdio[3] as Duplex;
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const keeper = { child, control, closed, said: '', output: '' };
  control.on('error', () => {});
  control.setEncoding('utf8').on('data', (text: string) => {
    keeper.said += text;
  });
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    keeper.output += text;
  });
  return keeper;
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
