import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'vitest';
import { parse } from 'yaml';
import { agentSettings } from '../../controller/settings/agent.ts';
import type { AgentSpec } from '../../core/frames/messages.ts';
import type { Agent } from '../../core/resources/agent.ts';
import { sessionClassSpec } from '../../core/resources/sessionclass.ts';
import { isObject } from '../../core/result/describe.ts';
import { useApiKey } from '../support/gemini.ts';
import { ModelApi } from '../support/model-api.ts';
import { RunnerHarness } from '../support/runner-harness.ts';
import { codingAgents } from './install.ts';

const BIN = codingAgents();

/** The agent of an example's class, with more arguments and variables than the example has. */
function agentOf(example: string, more: { command?: string[]; env: Record<string, string> }): AgentSpec {
  const file = join(import.meta.dirname, '..', '..', 'examples', example);
  const spec = sessionClassSpec.parse(parse(readFileSync(file, 'utf8')).spec);
  const env = Object.entries(more.env).map(([name, value]) => ({ name, value }));
  const command = [...(spec.agent?.command ?? []), ...(more.command ?? [])];
  const { env: own = [], ...agent } = spec.agent ?? {};
  const merged: Agent = { ...agent, command, env: [...own.filter(({ valueFrom }) => !valueFrom), ...env] };
  const settings = agentSettings({}, merged);
  assert.ok(!('reason' in settings), JSON.stringify(settings));
  return settings.agent;
}

/** The answer in what a turn came to. */
const answerIn = ({ output }: { output?: unknown }): unknown =>
  isObject(output) && 'response' in output ? output.response : output;

/**
 * Two turns, another pod, one more turn: the model is given all of the conversation. `prepare` is given the state directory
 * before the first.
 */
async function converse(
  t: TestContext,
  api: ModelApi,
  spec: AgentSpec,
  prepare: (stateDirectory: string) => void = () => {},
): Promise<void> {
  // The working directory of a pod is the same in every incarnation. Each runner of this test has folders of its own.
  using folder = {
    path: mkdtempSync(join(tmpdir(), 'berth-work-')),
    [Symbol.dispose]: () => rmSync(folder.path, { recursive: true }),
  };
  const agent = { ...spec, workingDir: folder.path };
  const env = { PATH: `${BIN}${delimiter}${process.env.PATH}` };
  await using first = await RunnerHarness.bound({ agent, env });
  prepare(first.directory('state'));
  const one = await first.runTurn('QUESTION one', 120_000);
  assert.equal(answerIn(one), 'ANSWER to 1: QUESTION one', JSON.stringify(one.error));
  if (spec.result === 'JsonLines') {
    const { inputTokens, outputTokens } = (one.metadata?.usage ?? {}) as Record<string, number>;
    assert.deepEqual([inputTokens, outputTokens], [11, 7]);
    assert.ok(first.agentEvents().length > 0, 'its other lines are events');
  }
  assert.equal(answerIn(await first.runTurn('QUESTION two', 120_000)), 'ANSWER to 2: QUESTION two');

  const state = first.frames('state').at(-1);
  assert.ok(state, 'its conversation is state');
  const { digest, keyId, bytes } = state.message;
  const bind = { incarnation: 2, restores: { digest, incarnation: 1, seq: state.seq } };
  await using second = await RunnerHarness.bound({ after: first, agent, env, bind });
  second.restore({ digest, keyId }, second.sealState(first.openState(state)));
  const three = await second.runTurn('QUESTION three', 120_000);
  assert.equal(answerIn(three), 'ANSWER to 3: QUESTION three', JSON.stringify(three.error));
  const given = api.requests.at(-1)?.flatMap(({ text }) => text.match(/^(QUESTION|ANSWER).*/gm) ?? []);
  assert.deepEqual(given, [
    'QUESTION one',
    'ANSWER to 1: QUESTION one',
    'QUESTION two',
    'ANSWER to 2: QUESTION two',
    'QUESTION three',
  ]);
  await t.annotate(`state ${bytes} bytes, packed and sealed ${state.binary.length}`);
}

test('Claude Code goes on with its conversation in the next incarnation, by the class in examples/', async (t) => {
  await using api = await ModelApi.start();
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'sk-ant-stand-in-0123456789' };
  await converse(t, api, agentOf('claude-code.yaml', { env }));
});

test('Codex CLI goes on with its conversation in the next incarnation, by the class in examples/', async (t) => {
  await using api = await ModelApi.start();
  const provider = { name: 'stand-in', base_url: `${api.url}/v1`, env_key: 'CODEX_API_KEY', wire_api: 'responses' };
  const settings = Object.entries(provider).map(([key, value]) => `model_providers.stand-in.${key}="${value}"`);
  const command = ['model_provider="stand-in"', 'model="gpt-5"', ...settings].flatMap((setting) => ['-c', setting]);
  await converse(t, api, agentOf('codex.yaml', { command, env: { CODEX_API_KEY: 'sk-stand-in-0123456789' } }));
});

test('Gemini CLI goes on with its conversation in the next incarnation, by the class in examples/', async (t) => {
  await using api = await ModelApi.start();
  const env = { GOOGLE_GEMINI_BASE_URL: api.url, GEMINI_API_KEY: 'stand-in-0123456789' };
  await converse(t, api, agentOf('gemini-cli.yaml', { env }), (state) => useApiKey(join(state, 'gemini')));
});
