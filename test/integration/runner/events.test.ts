import assert from 'node:assert/strict';
import { test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

test('events that an agent prints faster than they can be read all arrive', async () => {
  const count = 20_000;
  const event = JSON.stringify({ type: 'step', text: 'x'.repeat(174) });
  const jsonLines = { resultWhen: { '/type': 'result' }, output: '/output' };
  const script = `yes '${event}' | head -n ${count}; echo '{"type":"result","output":"done"}'`;
  await using runner = await RunnerHarness.bound({ agent: { result: 'JsonLines', jsonLines, args: [script] } });
  const { output } = await runner.result(runner.startTurn());
  assert.equal(output, 'done');
  // stderr is a stream of its own: its end may be read after the result in the frames.
  await eventually(() => runner.agentEvents().length === count, { what: 'all events as text' });
});
