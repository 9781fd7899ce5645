/** Effects of a busy machine: the runner or its keeper is not scheduled for a while. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import type { Contained, Survivor } from '../../../runner/process/contained.ts';
import { keeperStart } from '../../../runner/process/keeper.ts';
import { eventually } from '../../support/eventually.ts';
import { isAsleep } from '../../support/processes.ts';
import { hasKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { serverScript } from '../../support/servers.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { longEnough } from './long-enough.ts';

assert.ok(hasKeeper, 'build the keeper first: make keeper');

const KEEPER = join(import.meta.dirname, '..', '..', '..', 'build', 'keeper');

/** The keeper, but that what it hands on of the agent's output takes half a second: its words on descriptor 3 do not. */
const SLOW_KEEPER = `#!/usr/bin/env python3
import os, sys, time
for stream in (1, 2):
    reads, writes = os.pipe()
    if os.fork() == 0:
        # Of nobody's family.
        if os.fork(): os._exit(0)
        os.close(writes)
        os.closerange(3, reads)
        while True:
            piece = os.read(reads, 65536)
            time.sleep(0.5)
            if not piece: os._exit(0)
            while piece: piece = piece[os.write(stream, piece):]
    os.wait()
    os.dup2(writes, stream)
    os.close(reads)
    os.close(writes)
os.execv('${KEEPER}', ['keeper'] + sys.argv[1:])
`;

/** A runner with such a keeper. */
async function slowlyKept<T>(agent: object, use: (runner: RunnerHarness) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
  const keeper = join(folder, 'keeper');
  writeFileSync(keeper, SLOW_KEEPER, { mode: 0o755 });
  try {
    await using runner = await RunnerHarness.bound({ agent, env: { BERTH_KEEPER: keeper } });
    return await use(runner);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the news of an agent’s end that is faster than what the agent printed', () => {
  test('costs it no result, no text and no words of its error', async () => {
    const args = ['echo said; echo last words >&2; exit $1', 'x', '$(INPUT)'];
    await slowlyKept({ args, result: 'Text', input: 'Args' }, async (runner) => {
      assert.equal((await runner.runTurn('0')).output, 'said\n');
      assert.match((await runner.runTurn('3')).error?.message ?? '', /^exit code 3\nlast words$/);
    });
  });

  test('costs it nothing where somebody it left holds its streams, either', async () => {
    const args = ['sleep 300 & echo said; echo last words >&2'];
    await slowlyKept({ args, result: 'Text' }, async (runner) => {
      const turn = runner.startTurn();
      assert.equal((await runner.result(turn)).output, 'said\n');
      const { message } = await runner.frame('log');
      assert.equal(message.text, 'last words\n');
    });
  });

  test('costs a server none of its last words', async () => {
    const args = [serverScript(`console.error('last words'); process.exit(3);`)];
    await slowlyKept({ driver: 'Server', command: [process.execPath, '-e'], args }, async (runner) => {
      assert.match((await runner.runTurn()).error?.message ?? '', /exit code 3\nlast words/);
    });
  });
});

test('a keeper that was held hands on what its agent complained of before what it said after that', async () => {
  const script = `until kill -STOP $PPID && grep -q 'State:.T' /proc/$PPID/status; do :; done
    echo complained >&2; echo said; kill -CONT $PPID; read -r _`;
  const program = [KEEPER, '-', '/bin/bash', 'bash', '-c', script];
  // A common pipe for both streams shows their order.
  const keeper = spawn('sh', ['-c', 'exec "$0" "$@" 2>&1', ...program], { stdio: ['pipe', 'pipe', 'ignore', 'pipe'] });
  let output = '';
  keeper.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  (keeper.stdio[3] as Readable).resume();
  await eventually(() => output.split('\n').length === 3, { what: 'both lines' });
  keeper.stdio[3]?.destroy();
  await once(keeper, 'close');
  assert.equal(output, 'complained\nsaid\n');
});

describe('a keeper that has not answered in time', () => {
  /** Keeper that answers once it receives SIGUSR1. */
  const MUTE_KEEPER = `#!/usr/bin/perl
    open my $control, '+<&=', 3;
    $SIG{USR1} = sub { syswrite $control, "left 1 somebody\\nlisted 0 0\\n" };
    syswrite $control, "pid $$\\nstart\\n";
    sleep 1 while 1;
  `;

  /** Calls `use` with a keeper that was stopped just before the runner checks it. */
  async function stopped(use: (clock: VirtualClock, kept: Contained, survivors: Promise<Survivor[]>) => Promise<void>) {
    const folder = mkdtempSync(join(tmpdir(), 'berth-keeper-'));
    const keeper = join(folder, 'keeper');
    writeFileSync(keeper, MUTE_KEEPER, { mode: 0o755 });
    const clock = new VirtualClock();
    const start = keeperStart(keeper, clock, { required: false });
    const kept = await start({ file: '/bin/true', argv0: 'true', args: [], cwd: '/', env: {} });
    try {
      // The offset keeps the stop apart from the timer that continues the keeper.
      await clock.advance(500);
      const survivors = kept.survivors();
      await clock.advance(2999);
      await stop(kept);
      await clock.advance(1);
      await use(clock, kept, survivors);
    } finally {
      if (existsSync(`/proc/${kept.pid}`)) process.kill(kept.pid, 'SIGKILL');
      await kept.gone;
      rmSync(folder, { recursive: true });
    }
  }
  async function stop({ pid }: Contained): Promise<void> {
    process.kill(pid, 'SIGSTOP');
    const isStopped = () => /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    await eventually(isStopped, { what: 'that it is stopped' });
  }

  test('as somebody else held it at that moment is not killed', () =>
    stopped(async (_clock, { pid }, survivors) => {
      for (const signal of ['SIGUSR1', 'SIGCONT']) process.kill(pid, signal);
      assert.deepEqual(await survivors, [{ pid: 1, command: 'somebody' }]);
    }));

  test('and is stopped again and again is killed', () =>
    stopped(async (clock, kept) => {
      // The runner continues the keeper between the two stops.
      await clock.advance(900);
      await stop(kept);
      await clock.advance(100);
      await eventually(() => !existsSync(`/proc/${kept.pid}`), { what: 'its end' });
    }));
});

describe('a runner that was held for longer than a limit', () => {
  const bound = (script: string) => RunnerHarness.bound({ agent: { args: [script], result: 'Text' } });
  const file = (runner: RunnerHarness, name: string) => join(runner.directory('work'), name);

  /**
   * Holds the runner for as long, and until the agent has come so far and the keeper has handed that on: it sleeps. The agent
   * waits for the file `go`, which is there once the runner is held: it can have read nothing of what the agent does then.
   */
  async function hold(runner: RunnerHarness, ms: number, go: string, isThere: () => boolean): Promise<void> {
    const keeper = Number(readFileSync(`/proc/${runner.pid}/task/${runner.pid}/children`, 'utf8'));
    runner.child.kill('SIGSTOP');
    const isHeld = () => /^State:\tT/m.test(readFileSync(`/proc/${runner.pid}/status`, 'utf8'));
    await eventually(isHeld, { what: 'that the runner is held' });
    assert.equal(isThere(), false, 'the agent waits until the runner is held');
    writeFileSync(file(runner, go), '');
    await Promise.all([pause(ms), eventually(() => isThere() && isAsleep(keeper), { what: 'all that is to be read' })]);
    runner.child.kill('SIGCONT');
  }
  const succeeded = ({ outcome }: { outcome: string }) => outcome === 'Succeeded';

  test('does not call an agent stalled that has talked meanwhile', async () => {
    const { outcome, error } = await longEnough(async (stallMs) => {
      await using runner = await bound('until [ -e talked ]; do sleep 0.02; done; echo talked; touch over; sleep 0.2');
      const turn = randomUUID() as string;
      runner.send('turn', { turn, name: 'a', index: 1, attempt: 1, input: null, timeoutMs: 120_000, stallMs });
      await runner.frame('started');
      await hold(runner, stallMs, 'talked', () => existsSync(file(runner, 'over')));
      return await runner.result(turn);
    }, succeeded);
    assert.equal(outcome, 'Succeeded', error?.message);
  });

  test('does not call a turn too long that has ended in time', async () => {
    const { outcome, output } = await longEnough(async (limitMs) => {
      await using runner = await bound('until [ -e go ]; do sleep 0.02; done; echo done');
      const turn = runner.startTurn(null, limitMs);
      await runner.frame('started');
      await hold(runner, limitMs, 'go', () => runner.processes().length === 0);
      return await runner.result(turn);
    }, succeeded);
    assert.deepEqual([outcome, output], ['Succeeded', 'done\n']);
  });
});
