import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { RunnerHarness } from '../../support/runner-harness.ts';

/** Asks by its envelope, then tells what it was told. Every process leaves a line in HOME. */
const ASKS = {
  args: [
    `echo leg >> "$HOME/legs"; read -r request
    say() { printf '%s%s%s' "$BERTH_RESULT_START_MARKER" "$1" "$BERTH_RESULT_END_MARKER"; }
    if [ -n "$BERTH_APPROVAL" ]; then say "{\\"status\\":\\"success\\",\\"output\\":$request}"
    else echo x > "$BERTH_STATE_DIR/x"; say '{"status":"approval","prompt":"May I? token=abc","payload":["sk-0123456789abc"]}'; fi`,
  ],
};
const legs = (runner: RunnerHarness) =>
  readFileSync(join(runner.directory('tmp'), 'legs'), 'utf8').split('\n').length - 1;

describe('an agent that asks by its envelope', () => {
  test('state, log, then the redacted request, kept until it is acknowledged; no result', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: [`echo noise; ${ASKS.args[0]}`] } });
    const turn = runner.startTurn();
    const { seq, message } = await runner.frame('approval');
    assert.deepEqual(
      [message.turn, message.prompt, message.payload, message.process],
      [turn, 'May I? token=abc', ['sk-0123456789abc'], 'Ended'],
    );
    const [state] = runner.frames('state');
    const [log] = runner.frames('log');
    assert.deepEqual(message.state, { seq: state?.seq, digest: state?.message.digest });
    assert.equal(message.logSeq, log?.seq);
    assert.ok((state?.seq ?? 0) < seq && (log?.seq ?? 0) < seq);
    assert.equal(runner.frames('result').length, 0);
    // The turn again is answered by the same frames, not by another process.
    runner.startTurn(null, 30_000, turn);
    const again = runner.send('ping', {});
    await runner.frame('pong', (frame) => frame.message.n === again);
    assert.equal(legs(runner), 1);
    runner.send('ack', { through: seq });
    const n = runner.send('turn', { turn, name: 'turn-1', index: 1, attempt: 1, input: null, timeoutMs: 30_000 });
    assert.equal((await runner.refusal(n)).code, 'AlreadyDone');
  });

  test('a decision begins one process, however often it is sent', async () => {
    await using runner = await RunnerHarness.bound({ agent: ASKS });
    const turn = runner.startTurn({ a: 1 });
    const { seq, message } = await runner.frame('approval');
    runner.send('ack', { through: seq });
    const resume = {
      turn,
      name: 'turn-1',
      index: 1,
      attempt: 1,
      input: { a: 1 },
      timeoutMs: 30_000,
      ranMs: message.ranMs,
      startedAt: message.startedAt,
      approval: { requestId: message.id, decision: 'Deny' as const, note: 'no' },
    };
    for (let i = 0; i < 3; i++) runner.send('approval', resume);
    const result = await runner.result(turn);
    const output = result.output as { id: string; approval: object; input: object };
    assert.deepEqual([output.approval, output.input], [resume.approval, { a: 1 }]);
    assert.equal(output.id, `${turn}-1-${message.id}`);
    assert.equal(result.startedAt, message.startedAt);
    runner.send('approval', resume);
    assert.deepEqual(runner.frames('refused'), []);
    const result2 = runner.frames('result').at(-1);
    runner.send('ack', { through: result2?.seq ?? 0 });
    const n = runner.send('approval', resume);
    assert.equal((await runner.refusal(n)).code, 'AlreadyDone');
    assert.equal(legs(runner), 2);
  });

  test('the time before the question counts against the timeout after the decision', async () => {
    await using runner = await RunnerHarness.bound({ agent: { args: ['sleep 20'] } });
    const turn = 'a-turn';
    runner.send('approval', {
      turn,
      name: 'turn-1',
      index: 1,
      attempt: 1,
      input: null,
      timeoutMs: 100_000,
      ranMs: 99_900,
      approval: { requestId: 'r', decision: 'Approve' },
    });
    assert.equal((await runner.result(turn)).outcome, 'TimedOut');
  });

  test('a restored session is told so by the first request that brings no decision', async () => {
    const restored = { workspaceReset: true, note: 'new pod' };
    await using runner = await RunnerHarness.bound({
      bind: { restored },
      agent: { args: ['cat'], result: 'Json' },
    });
    const approval = { requestId: 'r', decision: 'Approve' as const };
    const start = { name: 'turn-1', index: 1, attempt: 1, input: null, timeoutMs: 30_000, ranMs: 0 };
    runner.send('approval', { ...start, turn: 'one', approval });
    const told = async (turn: string) =>
      ((await runner.result(turn)).output as { session: { restored?: object } }).session.restored;
    assert.equal(await told('one'), undefined);
    assert.deepEqual(await told(runner.startTurn()), restored);
    assert.equal(await told(runner.startTurn()), undefined);
  });

  for (const [what, envelope, problem] of [
    ['without a prompt', '{"status":"approval"}', /"prompt" must be a string; it is absent/],
    ['with an empty prompt', '{"status":"approval","prompt":" "}', /"prompt" is empty/],
    [
      'with a payload that is too large',
      `{"status":"approval","prompt":"q","payload":"'$(head -c 17000 /dev/zero | tr '\\0' x)'"}`,
      /"payload" has 17002 bytes/,
    ],
  ] as const) {
    test(`a request ${what} fails the turn, and the field is named`, async () => {
      const args = [`printf '%s%s%s' "$BERTH_RESULT_START_MARKER" '${envelope}' "$BERTH_RESULT_END_MARKER"`];
      await using runner = await RunnerHarness.bound({ agent: { args } });
      const { outcome, error } = await runner.runTurn();
      assert.deepEqual([outcome, error?.code], ['Failed', 'InvalidResult']);
      assert.match(error?.message ?? '', problem);
    });
  }
});
