import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { fileArchives } from '../../../controller/settings/file-archives.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const bind = { files: { due: true as const } };
const script = (text: string) => ({ result: 'Text' as const, args: [text] });

/** Sends archives of these files, each source as one. */
async function give(runner: RunnerHarness, ...sources: Record<string, string>[]): Promise<number> {
  const inline = sources.map((files) => ({ inline: files }));
  const archives = await fileArchives(inline, new Map());
  let n = 0;
  for (const [index, archive] of archives.entries()) {
    n = runner.send('files', { version: 'v1', index, count: archives.length }, archive);
  }
  return n;
}

describe('the files of an agent', () => {
  test('are in BERTH_AGENT_DIR, which is the working directory, before the first turn', async () => {
    const agent = script('pwd | grep -qx "$BERTH_AGENT_DIR" && cat greeting.txt lib/name.txt');
    await using runner = await RunnerHarness.bound({ agent, bind });
    await give(runner, { 'greeting.txt': 'hello ' }, { 'lib/name.txt': 'world' });
    const { outcome, output } = await runner.runTurn();
    assert.deepEqual([outcome, output], ['Succeeded', 'hello world']);
  });

  test('are named in arguments and variables by $(BERTH_AGENT_DIR)', async () => {
    const agent = { ...script('cat "$FILE"'), env: [{ name: 'FILE', value: '$(BERTH_AGENT_DIR)/a' }] };
    await using runner = await RunnerHarness.bound({ agent, bind });
    await give(runner, { a: 'found' });
    assert.equal((await runner.runTurn()).output, 'found');
  });

  test('are no part of the state', async () => {
    await using runner = await RunnerHarness.bound({ agent: script('ls $BERTH_STATE_DIR'), bind });
    await give(runner, { a: 'x' });
    const result = await runner.runTurn();
    assert.deepEqual([result.output, result.state], ['', 'Unchanged']);
  });

  test('are awaited by a turn that comes before them, which is refused', async () => {
    await using runner = await RunnerHarness.bound({ agent: script('cat a'), bind });
    runner.startTurn();
    const refused = await runner.frame('refused');
    assert.deepEqual(
      [refused.message.code, refused.message.message],
      ['NotRestored', 'the files of agent.files have to arrive first'],
    );
    await give(runner, { a: 'there' });
    assert.equal((await runner.runTurn()).output, 'there');
  });

  test('that cannot be unpacked are refused with the reason, and so are all that follow', async () => {
    await using runner = await RunnerHarness.bound({ agent: script('cat a'), bind });
    const { code, message } = await runner.refusal(
      runner.send('files', { version: 'v0', index: 0, count: 1 }, Buffer.from('no archive')),
    );
    assert.deepEqual([code, message], ['FilesFailed', 'incorrect header check']);
    assert.equal((await runner.refusal(await give(runner, { a: 'there' }))).message, message);
    runner.startTurn();
    await runner.frame('refused', (frame) => frame.message.code === 'NotRestored');
  });

  test('of a session that was bound without any are refused', async () => {
    await using runner = await RunnerHarness.bound({ agent: script('true') });
    assert.equal((await runner.refusal(await give(runner, { a: 'x' }))).code, 'AlreadyDone');
  });
});
