import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { RunnerHarness } from '../../support/runner-harness.ts';

/** Speaks as coding agents do: a conversation in a file of the state directory, one line of JSON after the other. */
const TALKER = `
const fs = require('node:fs');
const [how, id] = process.argv.slice(1);
const file = process.env.TALK_DIR + '/' + id + '.jsonl';
const say = (line) => console.log(JSON.stringify(line));
const prompt = fs.readFileSync(0, 'utf8');
say({ type: 'system', how });
if (how === '--resume' && !fs.existsSync(file)) { say({ type: 'result', is_error: true, result: 'no conversation ' + id }); process.exit(1); }
if (how === '--new' && fs.existsSync(file)) { say({ type: 'result', is_error: true, result: 'in use' }); process.exit(1); }
if (prompt === 'die early') { fs.mkdirSync(process.env.TALK_DIR, { recursive: true }); fs.writeFileSync(process.env.TALK_DIR + '/config', ''); process.exit(9); }
fs.mkdirSync(process.env.TALK_DIR, { recursive: true });
fs.appendFileSync(file, prompt + '\\n');
const turns = fs.readFileSync(file, 'utf8').trim().split('\\n');
say({ type: 'assistant', text: 'thinking' });
say({ type: 'result', is_error: false, result: turns.join(' | '), usage: { in: turns.length } });`;

const talker = {
  command: [process.execPath, '-e', TALKER, '--'],
  args: ['--new', '$(SESSION_UID)'],
  resumeArgs: ['--resume', '$(SESSION_UID)'],
  env: [{ name: 'TALK_DIR', value: '$(BERTH_STATE_DIR)/talk' }],
  input: 'Text' as const,
  result: 'JsonLines' as const,
  jsonLines: {
    resultWhen: { '/type': 'result' },
    output: '/result',
    errorWhen: { '/type': 'result', '/is_error': 'true' },
    error: '/result',
    usage: { turns: '/usage/in' },
  },
};

describe('a coding agent with no script', () => {
  test('goes on with its conversation turn after turn and in the next incarnation', async () => {
    await using first = await RunnerHarness.bound({ agent: talker });
    const one = await first.runTurn('hello');
    assert.deepEqual([one.output, one.metadata], ['hello', { usage: { turns: 1 } }]);
    assert.equal((await first.runTurn('again')).output, 'hello | again');
    const state = first.frames('state').at(-1);
    assert.ok(state);
    const { digest, keyId } = state.message;
    const bind = { incarnation: 2, restores: { digest, incarnation: 1, seq: state.seq } };
    await using second = await RunnerHarness.bound({ after: first, agent: talker, bind });
    second.restore({ digest, keyId }, second.sealState(first.openState(state)));
    assert.equal((await second.runTurn('later')).output, 'hello | again | later');
  });

  test('prints events as its other lines, and its error is the turn’s', async () => {
    await using runner = await RunnerHarness.bound({ agent: { ...talker, args: ['--resume', 'unknown'] } });
    const { error, outcome } = await runner.runTurn('hello');
    assert.deepEqual([outcome, error], ['Failed', { code: 'AgentFailed', message: 'no conversation unknown' }]);
    const events = runner.agentEvents().map(({ event }) => event);
    assert.deepEqual(events, [{ type: 'system', how: '--resume' }]);
  });

  test('starts its conversation anew if it failed before the conversation began and resumeWhen names the conversation', async () => {
    await using careless = await RunnerHarness.bound({ agent: talker });
    assert.equal((await careless.runTurn('die early')).exitCode, 9);
    assert.match((await careless.runTurn('hello')).error?.message ?? '', /no conversation/);
    await using careful = await RunnerHarness.bound({ agent: { ...talker, resumeWhen: 'talk/*.jsonl' } });
    assert.equal((await careful.runTurn('die early')).exitCode, 9);
    assert.equal((await careful.runTurn('hello')).output, 'hello');
    assert.equal((await careful.runTurn('again')).output, 'hello | again');
  });

  test('a state of names that begin with a dot is one', async () => {
    const agent = {
      args: ['touch $BERTH_STATE_DIR/.hidden; echo first', 'x'],
      resumeArgs: ['echo resumed', 'x'],
      result: 'Text' as const,
    };
    await using runner = await RunnerHarness.bound({ agent });
    assert.equal((await runner.runTurn()).output, 'first\n');
    assert.equal((await runner.runTurn()).output, 'resumed\n');
  });
});

describe('files of secrets', () => {
  test('are where $(BERTH_SECRETS_DIR) says, and what is in them does not show', async () => {
    const content = JSON.stringify({ client: 'a-client-of-ours', deep: { key: 'correct-horse-battery' } }, null, 2);
    await using runner = new RunnerHarness({
      agent: {
        result: 'Text',
        secretFiles: [{ path: 'cloud/key.json' }],
        env: [{ name: 'CREDENTIALS', value: '$(BERTH_SECRETS_DIR)/cloud/key.json' }],
        args: [
          'cat $CREDENTIALS >&2; node -p "JSON.parse(require(\'fs\').readFileSync(process.env.CREDENTIALS)).deep.key"; echo $BERTH_SECRETS_DIR',
        ],
      },
    });
    const folder = join(runner.root, 'berth-secrets');
    mkdirSync(join(folder, 'cloud'), { recursive: true });
    writeFileSync(join(folder, 'cloud', 'key.json'), content);
    await runner.ready();
    runner.bind();
    const turn = runner.startTurn();
    assert.equal((await runner.result(turn)).output, `[REDACTED]\n${folder}\n`);
    await runner.frame('log');
    for (const text of [runner.stderr, runner.stdout]) assert.ok(!/correct-horse|a-client-of-ours/.test(text), text);
  });
});
