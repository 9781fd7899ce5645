import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';
import { longEnough } from './long-enough.ts';

const text = (script: string) => ({ result: 'Text' as const, args: [script] });

describe('a session whose state is not kept', () => {
  test('packs and sends none', async () => {
    const agent = text('echo x >> $BERTH_STATE_DIR/f; wc -l < $BERTH_STATE_DIR/f');
    await using runner = await RunnerHarness.bound({ agent, bind: { persistence: { state: false } } });
    for (const lines of ['1', '2']) {
      const result = await runner.runTurn();
      assert.deepEqual([result.outcome, String(result.output).trim(), result.state], ['Succeeded', lines, 'Unchanged']);
    }
    assert.deepEqual(runner.frames('state'), []);
  });
});

describe('a state above persistence.maxState', () => {
  test('fails the turn with StateTooLarge, which names bytes and limit, and keeps the output', async () => {
    const agent = text('head -c $(cat) /dev/zero > $BERTH_STATE_DIR/f; echo done');
    const bind = { persistence: { state: true, maxStateBytes: 10_000 } };
    await using runner = await RunnerHarness.bound({ agent: { ...agent, input: 'Text' }, bind });
    const fits = await runner.runTurn('8000');
    assert.deepEqual([fits.outcome, typeof fits.state], ['Succeeded', 'object']);
    const [state] = runner.frames('state');
    assert.equal(state?.message.bytes, 512 + 8192 + 1024, 'it is measured as status.state.bytes is');
    const result = await runner.runTurn('9000');
    assert.deepEqual(
      [result.outcome, result.error?.code, String(result.output).trim(), result.state],
      ['Failed', 'StateTooLarge', 'done', 'Unchanged'],
    );
    assert.match(result.error?.message ?? '', /has 10752 bytes .* at most 10000 \(persistence\.maxState\)/);
    assert.equal((await runner.refusal(runner.send('snapshot', {}))).code, 'SnapshotFailed');
    const later = await runner.refusal(runner.send('snapshot', { maxStateBytes: 10_500 }));
    assert.match(later.message, /has 10752 bytes .* at most 10500/);
    runner.send('snapshot', { maxStateBytes: 20_000 });
    await eventually(() => runner.frames('state').length === 2, { what: 'it is handed over once the limit is raised' });
  });
});

describe('a workspace', () => {
  const workspace = { mountPath: '/workspace' };
  const bind = { workspace };
  test('is the working directory, unless the agent names another', async () => {
    await using runner = await RunnerHarness.bound({ agent: text('pwd -P; cat here'), bind });
    mkdirSync(join(runner.root, 'workspace'));
    writeFileSync(join(runner.root, 'workspace', 'here'), 'found');
    assert.equal((await runner.runTurn()).output, `${runner.root}/workspace\nfound`);
  });
  test('may hold the working directory that the agent names', async () => {
    const agent = { ...text('pwd -P'), workingDir: '/workspace/repo' };
    await using runner = await RunnerHarness.bound({ agent, bind });
    mkdirSync(join(runner.root, 'workspace', 'repo'), { recursive: true });
    assert.equal(String((await runner.runTurn()).output).trim(), `${runner.root}/workspace/repo`);
  });
});

describe('a turn with a stall timeout', () => {
  const start = (runner: RunnerHarness, stallMs: number) => {
    const turn = randomUUID() as string;
    runner.send('turn', { turn, name: 'a', index: 1, attempt: 1, input: null, timeoutMs: 120_000, stallMs });
    return runner.result(turn);
  };
  test('is stopped as Stalled when it hangs', async () => {
    await using runner = await RunnerHarness.bound({ agent: text('echo begun; sleep 60') });
    const result = await start(runner, 500);
    assert.deepEqual([result.outcome, result.error?.code], ['Failed', 'Stalled']);
    assert.deepEqual(runner.processes(), []);
  });
  test('is not stopped when it is long but talks', async () => {
    // The command prints for 1.5 times the stall timeout.
    const { outcome, error } = await longEnough(
      async (stallMs) => {
        const agent = text(`for i in $(seq ${stallMs / 100}); do echo $i; sleep 0.15; done`);
        await using runner = await RunnerHarness.bound({ agent });
        return await start(runner, stallMs);
      },
      (result) => result.outcome === 'Succeeded',
    );
    assert.equal(outcome, 'Succeeded', error?.message);
  });
});

test('a turn that is stopped because the session’s lifetime is over says so', async () => {
  await using runner = await RunnerHarness.bound({ agent: text('echo $$ > pid; exec sleep 60') });
  const turn = runner.startTurn();
  await runner.frame('started');
  runner.send('cancel', { turn, outcome: 'TimedOut', reason: 'LifetimeExceeded' });
  const result = await runner.result(turn);
  assert.deepEqual([result.outcome, result.error?.code], ['TimedOut', 'LifetimeExceeded']);
});
