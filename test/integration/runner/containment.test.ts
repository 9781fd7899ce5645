import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { skipIf, skipWithout } from '../../support/requires.ts';
import { hasKeeper, noKeeper, RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

/** A daemon as they are made: a session of its own, its parent gone. */
const DAEMON = '(setsid setsid sleep 300 >/dev/null 2>&1 &)';
/** Waits until the daemon is detached, a child of the keeper. */
const DETACHED = 'until ps -eo ppid=,args= | grep -Eq "^ *$PPID sleep 300$"; do :; done';
const keepersOf = (pid: number) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
const TEXT = { result: 'Text' as const };
/** A runner waits for the end of its agents, but not for ever: what a keeper that is not let run has left then goes when it is. */
const nobodyIsLeft = (runner: RunnerHarness) =>
  eventually(() => runner.processes().length === 0, { what: 'no process is left' });

for (const processGroup of hasKeeper ? [false, true] : [true]) {
  const by = processGroup ? 'process group' : 'keeper';

  describe(`stopping, by ${by}`, () => {
    test('on timeout the whole group is stopped, TERM first', async () => {
      const args = ['trap "echo got TERM >&2; exit 1" TERM; touch ready; sleep 300 & sleep 300 & wait'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { args } });
      const isReady = () => existsSync(join(runner.directory('work'), 'ready'));
      const { turn, result } = await longEnough(
        async (limitMs) => {
          const turn = runner.startTurn(null, limitMs);
          return { turn, result: await runner.result(turn) };
        },
        ({ result }) => isReady() && result.exitCode === 1,
      );
      assert.deepEqual([result.outcome, result.error?.code, result.exitCode], ['TimedOut', 'TurnTimedOut', 1]);
      assert.match(result.error?.message ?? '', /longer than its timeout of \d/);
      assert.match((await runner.frame('log', ({ message }) => message.turn === turn)).message.text, /got TERM/);
      assert.deepEqual(runner.processes(), []);
    });

    test('on cancel an agent that ignores SIGTERM is killed after its grace, with all of its children', async () => {
      const args = ['trap "" TERM; sleep 300 & sleep 300; sleep 300'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { args } });
      const turn = runner.startTurn();
      await runner.frame('started');
      await eventually(() => runner.processes().some(({ command }) => command.startsWith('sleep')));
      runner.send('cancel', { turn, outcome: 'Cancelled' });
      const result = await runner.result(turn);
      assert.deepEqual([result.outcome, result.error?.code, result.signal], ['Cancelled', 'Cancelled', 'SIGKILL']);
      assert.deepEqual(runner.processes(), []);
    });

    test('a turn that was stopped is followed by the next', async () => {
      const args = ['[ "$1" = slow ] && sleep 300; echo ok', 'x', '$(INPUT)'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { ...TEXT, args, input: 'Args' } });
      assert.equal((await runner.runTurn('slow', 200)).outcome, 'TimedOut');
      assert.equal((await runner.runTurn('fast')).output, 'ok\n');
    });
  });

  describe(`a background child, by ${by}`, () => {
    test('that holds stdout does not keep the turn; what it printed is in the result, what it left is named', async () => {
      const args = ['(echo one; exec sleep 300) & echo two; until grep -q ^sleep /proc/$!/cmdline; do :; done'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { ...TEXT, args } });
      const result = await runner.runTurn();
      assert.deepEqual((result.output as string).split('\n').sort(), ['', 'one', 'two']);
      assert.ok(result.leftRunning.some(({ pid, command }) => pid > 1 && command === 'sleep 300'));
      assert.equal(result.outcome, 'Succeeded');
    });

    test('that prints after the turn is done is in the log only', async () => {
      const args = ['(until [ -e go ]; do sleep 0.05; done; echo late) & echo now'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { ...TEXT, args } });
      assert.equal((await runner.runTurn()).output, 'now\n');
      writeFileSync(join(runner.directory('work'), 'go'), '');
      await eventually(() => runner.stderr === 'late\n', { what: 'later text on stderr' });
    });

    test('that never stops printing delays the turn by its drain only', async () => {
      const args = [
        'yes tick & printf \'%s{"status":"success"}%s\' "$BERTH_RESULT_START_MARKER" "$BERTH_RESULT_END_MARKER"',
      ];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { args } });
      assert.equal((await runner.runTurn()).outcome, 'Succeeded');
    });

    test('goes on into the next turn and is stopped with its session', async () => {
      const args = ['sleep 300 >/dev/null 2>&1 & echo $!'];
      await using runner = await RunnerHarness.bound({ processGroup, agent: { ...TEXT, args } });
      const first = (await runner.runTurn()).output as string;
      await runner.runTurn();
      // A process has no environment for a moment while it executes its program.
      await eventually(() => runner.processes().some(({ pid }) => pid === Number(first)), { what: 'that it lives' });
      runner.send('shutdown', { graceMs: 1000 });
      await runner.exited;
      await nobodyIsLeft(runner);
    });
  });
}

describe('the keeper', skipIf(noKeeper), () => {
  test('finds a daemon that left its session and group, names it, and stops it with the session', async () => {
    await using runner = await RunnerHarness.bound({ agent: { ...TEXT, args: [`${DAEMON}; ${DETACHED}`] } });
    const { leftRunning } = await runner.runTurn();
    assert.deepEqual(
      leftRunning.map(({ command }) => command),
      ['sleep 300'],
    );
    runner.send('shutdown', { graceMs: 1000 });
    await runner.exited;
    await nobodyIsLeft(runner);
  });

  test('on timeout a daemon is stopped too', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: [`${DAEMON}; ${DAEMON}; sleep 300`] } });
    assert.equal((await runner.runTurn(null, 400)).outcome, 'TimedOut');
    assert.deepEqual(runner.processes(), []);
  });

  test('on timeout a daemon that ignores SIGTERM is waited for and killed', async () => {
    const args = [`(trap "" TERM; ${DAEMON}); sleep 300`];
    await using runner = await RunnerHarness.bound({ agent: { args } });
    assert.equal((await runner.runTurn(null, 400)).outcome, 'TimedOut');
    assert.deepEqual(runner.processes(), []);
  });

  test('ends processes that fork faster than the table can be read', async () => {
    const script = `
const { spawn } = require('child_process');
process.on('SIGTERM', () => {});
process.on('SIGHUP', () => {});
const again = () => spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
again(); again(); setInterval(() => spawn('sh', ['-c', 'trap "" TERM; for i in 1 2 3 4 5 6 7 8; do (sleep 300 &) ; done; sleep 300'], { detached: true, stdio: 'ignore' }), 50);`;
    await using runner = await RunnerHarness.bound({ agent: { command: [process.execPath, '-e'], args: [script] } });
    assert.equal((await runner.runTurn(null, 400)).outcome, 'TimedOut');
    assert.deepEqual(runner.processes(), []);
  });

  test('ends with its family, each turn’s', async () => {
    await using runner = await RunnerHarness.bound({ agent: { ...TEXT, args: [`${DAEMON}; ${DETACHED}; exit 0`] } });
    await runner.runTurn();
    const daemons = runner.processes().map(({ pid }) => pid);
    assert.equal(keepersOf(runner.pid).length, 1);
    for (const pid of daemons) process.kill(pid, 'SIGKILL');
    await eventually(() => keepersOf(runner.pid).length === 0, { what: 'the keeper has ended' });
  });

  test('leaves nobody when the runner is killed', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: [`trap "" TERM; ${DAEMON}; sleep 300`] } });
    runner.startTurn();
    await eventually(() => runner.processes().filter(({ command }) => command === 'sleep 300').length === 2);
    runner.child.kill('SIGKILL');
    await runner.exited;
    await nobodyIsLeft(runner);
  });

  test('that its agent kills or stops fails the turn and takes the agent with it', async () => {
    {
      const args = ['sleep 300 & kill -KILL $PPID; wait'];
      await using runner = await RunnerHarness.bound({ agent: { args } });
      const result = await runner.runTurn();
      assert.deepEqual([result.outcome, result.signal], ['Failed', 'SIGKILL']);
      await eventually(() => runner.processes().length === 0, { what: 'nobody is left after SIGKILL' });
    }
    const stopped = await longEnough(
      async (limitMs) => {
        const args = ['sleep 300 & kill -STOP $PPID; touch stopped; wait'];
        await using runner = await RunnerHarness.bound({ agent: { args } });
        const { outcome } = await runner.runTurn(null, limitMs);
        await eventually(() => runner.processes().length === 0, { what: 'nobody is left after SIGSTOP' });
        return { outcome, wasStopped: existsSync(join(runner.directory('work'), 'stopped')) };
      },
      ({ wasStopped }) => wasStopped,
    );
    assert.deepEqual(stopped, { outcome: 'TimedOut', wasStopped: true });
  });

  test('gives the agent no descriptor of the runner’s, no new privileges and default signals', async () => {
    const args = ['ls /proc/self/fd; grep -E "NoNewPrivs|SigIgn|SigBlk" /proc/self/status'];
    await using runner = await RunnerHarness.bound({ agent: { ...TEXT, args } });
    const output = (await runner.runTurn()).output as string;
    assert.match(output, /^0\n1\n2\n3\nSig/);
    assert.match(output, /SigBlk:\s+0+\nSigIgn:\s+0+\nNoNewPrivs:\s+1\n/);
  });
});

/**
 * Permissions as in an image: Node and keeper belong to root, Node is executable but not readable, the runner has
 * another uid.
 */
describe(
  'hardening',
  skipIf(skipWithout('root', process.getuid?.() === 0, 'needs root to start a runner of another uid')),
  () => {
    test('an agent of the same uid can open neither the runner’s memory nor its descriptors, and bound says hardened', async () => {
      const place = mkdtempSync(join(tmpdir(), 'berth-hardened-'));
      chmodSync(place, 0o755);
      const bundle = join(place, 'runner.cjs');
      const checkout = fileURLToPath(new URL('../../..', import.meta.url));
      const built = spawn(join(checkout, 'node_modules/.bin/esbuild'), [
        join(checkout, 'runner/main.ts'),
        '--bundle',
        '--platform=node',
        '--format=cjs',
        '--log-level=error',
        `--outfile=${bundle}`,
      ]);
      assert.equal(await new Promise((resolve) => built.once('exit', resolve)), 0);
      copyFileSync(process.execPath, join(place, 'node'));
      chmodSync(join(place, 'node'), 0o711);
      const keeper = join(checkout, 'build', 'keeper');
      if (existsSync(keeper)) copyFileSync(keeper, join(place, 'keeper'));
      const args = [
        'p=$(ps -o ppid= $PPID 2>/dev/null || grep PPid /proc/$PPID/status | cut -f2); p=$(echo $p); for f in mem environ fd/0 fd/1; do if (exec 3</proc/$p/$f) 2>/dev/null; then echo open $f; else echo closed $f; fi; done; grep -c runner.cjs /proc/$p/cmdline',
      ];
      const command = [
        'setpriv',
        '--reuid=65534',
        '--regid=65534',
        '--clear-groups',
        // setpriv itself still has the capability to read any file; what it starts has not.
        'sh',
        '-c',
        'exec "$@"',
        'sh',
        join(place, 'node'),
        '--disable-sigusr1',
        bundle,
      ];
      const home = mkdtempSync(join(tmpdir(), 'berth-hardened-root-'));
      chmodSync(home, 0o777);
      try {
        await using runner = new RunnerHarness({
          command,
          agent: { ...TEXT, args },
          env: { BERTH_LOCAL_ROOT: join(home, 'r') },
        });
        await runner.ready();
        runner.bind();
        assert.equal((await runner.frame('bound')).message.hardened, true);
        const output = (await runner.runTurn()).output as string;
        const expected = ['closed mem', 'closed environ', 'closed fd/0', 'closed fd/1', '1', ''];
        if (hasKeeper) assert.deepEqual(output.split('\n'), expected);
      } finally {
        rmSync(place, { recursive: true });
        rmSync(home, { recursive: true });
      }
    });
  },
);
