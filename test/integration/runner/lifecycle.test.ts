import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

const SAY = (output: string) =>
  `printf '%s{"status":"success","output":%s}%s\\n' "$BERTH_RESULT_START_MARKER" '${output}' "$BERTH_RESULT_END_MARKER"`;
const saying = (output: string, before = '') => ({ args: [`${before}\n${SAY(output)}`] });

describe('state', () => {
  const KEEPING = {
    input: 'Stdin' as const,
    result: 'Json' as const,
    args: [
      'cat > "$BERTH_STATE_DIR/last"; cat "$BERTH_STATE_DIR/kept" 2>/dev/null || echo null; echo 42 > "$BERTH_STATE_DIR/kept"',
    ],
  };

  test('a state is restored in the next incarnation, whose first request says that it was', async () => {
    await using first = await RunnerHarness.bound({ agent: KEEPING });
    assert.equal((await first.runTurn()).output, null);
    const [state] = first.frames('state');
    assert.ok(state);
    const { digest, keyId } = state.message;
    const restored = { workspaceReset: true, note: 'the workspace was reset' };
    const bind = { incarnation: 2, restores: { digest, incarnation: 1, seq: state.seq }, restored };
    await using second = await RunnerHarness.bound({ agent: KEEPING, after: first, bind });
    const early = second.send('turn', { turn: 'e', name: 'e', index: 2, attempt: 1, input: 1, timeoutMs: 1000 });
    assert.equal((await second.refusal(early)).code, 'NotRestored');
    second.restore({ digest, keyId }, state.binary);
    second.restore({ digest, keyId }, state.binary);
    assert.equal((await second.runTurn()).output, 42);
    const request = () => JSON.parse(readFileSync(join(second.directory('state'), 'last'), 'utf8'));
    assert.deepEqual(request().session.restored, restored);
    await second.runTurn();
    assert.equal(request().session.restored, undefined);
    const late = second.restore({ digest: '00', keyId }, state.binary);
    assert.equal((await second.refusal(late)).code, 'AlreadyDone');
  });

  test('a restored state that a turn leaves alone is Unchanged', async () => {
    await using first = await RunnerHarness.bound({ agent: { result: 'Text', args: ['echo 1 > $BERTH_STATE_DIR/f'] } });
    await first.runTurn();
    const state = await first.frame('state');
    const restores = { digest: state.message.digest, incarnation: 1, seq: state.seq };
    const agent = { result: 'Text' as const, args: ['cat $BERTH_STATE_DIR/f'] };
    await using second = await RunnerHarness.bound({ agent, after: first, bind: { incarnation: 2, restores } });
    second.restore(state.message, state.binary);
    const result = await second.runTurn();
    assert.deepEqual([result.output, result.state], ['1\n', 'Unchanged']);
  });

  test('a state of another digest is refused, and the right one taken after it; one that cannot be restored is refused for good', async () => {
    await using first = await RunnerHarness.bound({ agent: KEEPING });
    await first.runTurn();
    const state = await first.frame('state');
    const { digest, keyId } = state.message;
    const bind = { incarnation: 2, restores: { digest, incarnation: 1, seq: state.seq } };
    {
      await using second = await RunnerHarness.bound({ agent: KEEPING, after: first, bind });
      assert.equal((await second.refusal(second.restore({ digest: '00', keyId }, state.binary))).code, 'RestoreFailed');
      second.restore({ digest, keyId }, state.binary);
      assert.equal((await second.runTurn()).output, 42);
    }
    const torn = Buffer.from(state.binary);
    torn[20] = (torn[20] ?? 0) ^ 1;
    const problems = { torn: /not sealed with this/, other: /was not restored/ };
    for (const [what, problem] of Object.entries(problems)) {
      await using second = await RunnerHarness.bound({ agent: KEEPING, after: first, bind });
      const wrong = what === 'torn' ? torn : second.sealState(Buffer.from('no archive'));
      for (const sealed of [wrong, state.binary]) {
        const { code, message } = await second.refusal(second.restore({ digest, keyId }, sealed));
        assert.equal(code, 'RestoreFailed');
        assert.match(message, problem);
      }
    }
  });

  test('the state is saved however the turn ended', async () => {
    const args = ['echo "$1" > $BERTH_STATE_DIR/f; if [ "$1" = fail ]; then exit 3; fi; sleep 60', 'x', '$(INPUT)'];
    await using runner = await RunnerHarness.bound({ agent: { input: 'Args', args } });
    assert.deepEqual(await runner.runTurn('fail').then((r) => [r.outcome, typeof r.state]), ['Failed', 'object']);
    const written = () => readFileSync(join(runner.directory('state'), 'f'), 'utf8');
    const late = await longEnough(
      (limitMs) => runner.runTurn('slow', limitMs),
      () => written() === 'slow\n',
    );
    assert.deepEqual([late.outcome, typeof late.state], ['TimedOut', 'object']);
    const turn = runner.startTurn('cancelled');
    await eventually(() => written() === 'cancelled\n');
    runner.send('cancel', { turn, outcome: 'Cancelled' });
    assert.deepEqual(await runner.result(turn).then((r) => [r.outcome, typeof r.state]), ['Cancelled', 'object']);
  });

  test('a state that is too large fails the turn with StateTooLarge, the output kept', async () => {
    const agent = saying('"done"', 'head -c 34000000 /dev/urandom > $BERTH_STATE_DIR/big');
    await using runner = await RunnerHarness.bound({ agent });
    const result = await runner.runTurn();
    assert.deepEqual(
      [result.outcome, result.error?.code, result.output, result.state],
      ['Failed', 'StateTooLarge', 'done', 'Unchanged'],
    );
    assert.match(result.error?.message ?? '', /at most 33554432/);
    assert.equal((await runner.refusal(runner.send('snapshot', {}))).code, 'SnapshotFailed');
  });

  test('snapshot is answered by the state as it is', async () => {
    await using runner = await RunnerHarness.bound();
    writeFileSync(join(runner.directory('state'), 'by-hand'), 'x');
    runner.send('snapshot', {});
    const { message } = await runner.frame('state');
    assert.equal(message.turn, undefined);
  });
});

describe('the end', () => {
  test('SIGTERM stops the agent, sends the result and bye, and exits with 143', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['trap "" TERM; sleep 60 & wait; sleep 60'] } });
    const turn = runner.startTurn();
    await runner.frame('started');
    runner.child.kill('SIGTERM');
    assert.deepEqual(await runner.exited, { code: 143, signal: null });
    const result = await runner.result(turn);
    assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'PodLost']);
    assert.equal((await runner.frame('bye')).message.reason, 'Signal');
    await eventually(() => runner.processes().length === 0, { what: 'no process is left' });
  });

  test('SIGTERM before bind exits with 143', async () => {
    await using runner = new RunnerHarness();
    await runner.ready();
    runner.child.kill('SIGTERM');
    assert.deepEqual(await runner.exited, { code: 143, signal: null });
  });

  test('shutdown ends what runs in the background, sends bye and exits with 0', async () => {
    await using runner = await RunnerHarness.bound({ agent: { result: 'Text', args: ['sleep 60 >/dev/null 2>&1 &'] } });
    assert.equal((await runner.runTurn()).leftRunning.length, 1);
    runner.send('shutdown', { graceMs: 1000 });
    assert.deepEqual(await runner.exited, { code: 0, signal: null });
    assert.equal((await runner.frame('bye')).message.reason, 'Shutdown');
    await eventually(() => runner.processes().length === 0, { what: 'no process is left' });
  });

  test('a reader of stdout that stalls blocks neither the agent nor the end', async () => {
    const agent = {
      result: 'Text' as const,
      args: ['head -c 3000000 /dev/zero | tr "\\0" x; touch $BERTH_STATE_DIR/ran'],
    };
    await using runner = await RunnerHarness.bound({ agent });
    runner.child.stdout?.pause();
    runner.startTurn();
    await eventually(() => existsSync(join(runner.directory('state'), 'ran')));
    runner.child.kill('SIGTERM');
    assert.deepEqual(await runner.exited, { code: 143, signal: null });
  });
});
