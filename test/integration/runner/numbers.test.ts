import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import type { AgentSpec, ToolSpec } from '../../../core/frames/messages.ts';
import { parseExact } from '../../../core/json.ts';
import { eventually } from '../../support/eventually.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const NUMBERS = '[9007199254740993,-9223372036854775808,12345678901234567890,1.00000000000000000001,1e999]';

const tool = (name: string, command: string[]): ToolSpec => {
  const parameters = { type: 'object', properties: { of: { type: 'array', items: { type: 'number' } } } };
  return { name, description: '', parameters, command, timeoutMs: 30_000 };
};
/** Answers with the request as it stood, without reading its numbers. */
const SERVER = `require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id } = JSON.parse(line);
  console.log('{"type":"response","id":"' + id + '","timestamp":"2026-01-01T00:00:00Z","result":' + line + '}');
});`;
const SAY = `printf '%s{"status":"success","output":%s}%s' "$BERTH_RESULT_START_MARKER" "$0" "$BERTH_RESULT_END_MARKER"`;

/** Each way that an input reaches an agent and its output comes back; `at` is where the output has the numbers. */
const WAYS: { way: string; agent: Partial<AgentSpec>; input?: string; at: string[] }[] = [
  { way: 'on stdin', agent: { command: ['cat'], args: [], result: 'Json' }, at: ['input', 'of'] },
  {
    way: 'in a file',
    agent: { command: ['sh', '-c', 'cat "$BERTH_INPUT_FILE"'], args: [], input: 'File', result: 'Json' },
    at: ['input', 'of'],
  },
  {
    way: 'in arguments',
    agent: { command: ['printf', '%s'], args: ['$(INPUT)'], input: 'Args', result: 'Json' },
    at: ['of'],
  },
  {
    way: 'as a field in arguments, in an envelope',
    agent: { command: ['sh', '-c', SAY], args: ['$(INPUT.of)'], input: 'Args', result: 'Envelope' },
    at: [],
  },
  {
    way: 'as a line of JSON',
    agent: {
      command: ['cat'],
      args: [],
      result: 'JsonLines',
      jsonLines: { resultWhen: { '/type': 'request' }, output: '/input/of' },
    },
    at: [],
  },
  {
    way: 'by a server',
    agent: { driver: 'Server', command: [process.execPath, '-e', SERVER], args: [] },
    at: ['input', 'of'],
  },
  {
    way: 'by a tool',
    agent: {
      driver: 'Tools',
      command: [],
      args: [],
      result: 'Json',
      tools: [tool('request', ['cat'])],
      maxParallel: 1,
    },
    input: `{"tool":"request","args":{"of":${NUMBERS}}}`,
    at: ['result', 'input', 'of'],
  },
];

describe('numbers between controller and agent', () => {
  for (const { way, agent, input = `{"of":${NUMBERS}}`, at } of WAYS) {
    test(`keep every digit ${way}`, async () => {
      await using runner = await RunnerHarness.bound({ agent });
      const { output, error } = await runner.runTurn(parseExact(input));
      const found = at.reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], output);
      assert.equal(JSON.stringify(found), NUMBERS, error?.message);
    });
  }

  test('keep every digit in an event and a result over the socket', async () => {
    const waits = 'until [ -e "$BERTH_STATE_DIR/go" ]; do sleep 0.02; done';
    await using runner = await RunnerHarness.bound({
      agent: { command: ['sh', '-c', waits], args: [], result: 'Text' },
    });
    const turn = runner.startTurn(null);
    await runner.frame('started');
    const socket = connect(join(runner.directory('run'), 'berth.sock'));
    socket.write(
      `{"do":"event","event":${NUMBERS}}\n{"do":"result","result":{"status":"success","output":${NUMBERS}}}\n`,
    );
    const [answers] = await once(socket, 'data');
    assert.match(String(answers), /^\{"ok":true/);
    const event = await eventually(() => runner.agentEvents()[0]?.event, { what: 'the event' });
    assert.equal(JSON.stringify(event), NUMBERS);
    socket.destroy();
    writeFileSync(join(runner.directory('state'), 'go'), '');
    assert.equal(JSON.stringify((await runner.result(turn)).output), NUMBERS);
  });
});
