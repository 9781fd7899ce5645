import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'vitest';
import { unpackContents } from '../../../core/artifacts/packed.ts';
import { RunnerHarness } from '../../support/runner-harness.ts';

const bind = { artifacts: { maxBytes: 10_000, maxFiles: 3 } };
const text = (script: string) => ({ result: 'Text' as const, input: 'Text' as const, args: [script] });

/** Artifacts of the runner's last frame of them, as name and text. */
async function lastOf(runner: RunnerHarness): Promise<[name: string, text: string][]> {
  const frame = runner.frames('artifacts').at(-1);
  if (!frame) return [];
  const { files } = frame.message;
  const content = await unpackContents(files, frame.binary);
  assert.ok(content, 'the contents fit the digests');
  let at = 0;
  return files.map(({ name, bytes }) => {
    at += bytes;
    return [name, content.toString('utf8', at - bytes, at)];
  });
}

describe('a runner that is bound with limits of artifacts', () => {
  test('sends what a turn leaves in BERTH_OUTPUT_DIR before its result, and empties it for each turn', async () => {
    const agent = text('ls -A "$BERTH_OUTPUT_DIR"; n=$(cat); [ "$n" ] && echo "$n" > "$BERTH_OUTPUT_DIR/n$n"; true');
    await using runner = await RunnerHarness.bound({ agent, bind });
    const first = await runner.runTurn('1');
    const [frame] = runner.frames('artifacts');
    assert.equal(first.artifactsSeq, frame?.seq);
    assert.deepEqual(await lastOf(runner), [['n1', '1\n']]);
    const second = await runner.runTurn('2');
    assert.deepEqual([second.outcome, second.output], ['Succeeded', ''], 'the second turn finds an empty folder');
    assert.deepEqual(await lastOf(runner), [['n2', '2\n']]);
    const third = await runner.runTurn('');
    assert.deepEqual([third.outcome, third.artifactsSeq], ['Succeeded', undefined]);
    assert.equal(runner.frames('artifacts').length, 2);
  });

  test('fails a turn that leaves too much with ArtifactsTooLarge and keeps the output and the state', async () => {
    const agent = text('head -c 10001 /dev/zero > $BERTH_OUTPUT_DIR/x; echo s > $BERTH_STATE_DIR/s; echo done');
    await using runner = await RunnerHarness.bound({ agent, bind });
    const { outcome, error, output, state, artifactsSeq } = await runner.runTurn('');
    assert.deepEqual(
      [outcome, error?.code, output, artifactsSeq],
      ['Failed', 'ArtifactsTooLarge', 'done\n', undefined],
    );
    assert.match(
      error?.message ?? '',
      /has 10001 bytes; 10000 can be kept \(artifacts\.maxBytes\).*"x" \(10001 bytes\)/,
    );
    assert.equal(typeof state, 'object');
  });

  test('sends the artifacts of a turn that fails, whose own error stays the first', async () => {
    const agent = text('echo why > $BERTH_OUTPUT_DIR/report; exit 3');
    await using runner = await RunnerHarness.bound({ agent, bind });
    const { error } = await runner.runTurn('');
    assert.equal(error?.code, 'AgentFailed');
    assert.deepEqual(await lastOf(runner), [['report', 'why\n']]);
    await using full = await RunnerHarness.bound({ agent: text('cd $BERTH_OUTPUT_DIR; touch 1 2 3 4; exit 3'), bind });
    const both = await full.runTurn('');
    assert.equal(both.error?.code, 'AgentFailed');
    assert.match(both.error?.message ?? '', /exit code 3\n(.*\n)*.*more than 3 files/);
  });

  test('gives BERTH_OUTPUT_DIR to agents of every driver', async () => {
    const server = `import json,os,sys
for line in sys.stdin:
    request = json.loads(line)
    open(os.environ["BERTH_OUTPUT_DIR"] + "/file", "w").write(request["id"][:1] and "server")
    print(json.dumps({"type":"response","id":request["id"],"timestamp":request["timestamp"],"result":1}), flush=True)`;
    const agents = [
      { agent: text('printf %s command > $BERTH_OUTPUT_DIR/file'), input: '', found: 'command' },
      {
        agent: { driver: 'Server' as const, command: ['python3', '-c', server], args: [] },
        input: 'x',
        found: 'server',
      },
      {
        agent: { driver: 'Shell' as const, command: [], args: [] },
        input: { command: 'printf %s shell > $BERTH_OUTPUT_DIR/file' },
        found: 'shell',
      },
      {
        agent: {
          driver: 'Tools' as const,
          command: [],
          args: [],
          tools: [
            {
              name: 'write',
              description: '',
              parameters: {},
              command: ['sh', '-c', 'printf %s tools > $BERTH_OUTPUT_DIR/file; echo 1'],
              timeoutMs: 60_000,
            },
          ],
        },
        input: { tool: 'write', args: {}, call_id: '1' },
        found: 'tools',
      },
    ];
    for (const { agent, input, found } of agents) {
      await using runner = await RunnerHarness.bound({ agent, bind });
      const { error } = await runner.runTurn(input);
      assert.deepEqual([error, await lastOf(runner)], [undefined, [['file', found]]], found);
    }
  });

  test('sends at the end of a turn what all its processes have left in the pod, and nothing with a question', async () => {
    const asks = `read -r request
      say() { printf '%s%s%s' "$BERTH_RESULT_START_MARKER" "$1" "$BERTH_RESULT_END_MARKER"; }
      if [ -n "$BERTH_APPROVAL" ]; then echo b > "$BERTH_OUTPUT_DIR/b"; say '{"status":"success"}'
      else echo a > "$BERTH_OUTPUT_DIR/a"; say '{"status":"approval","prompt":"May I?"}'; fi`;
    await using runner = await RunnerHarness.bound({ agent: { args: [asks] }, bind });
    const turn = runner.startTurn();
    const { seq, message } = await runner.frame('approval');
    assert.deepEqual(runner.frames('artifacts'), []);
    runner.send('ack', { through: seq });
    const { ranMs, id } = message;
    const again = { turn, name: 'turn-1', index: 1, attempt: 1, input: null, timeoutMs: 120_000, ranMs };
    runner.send('approval', { ...again, approval: { requestId: id, decision: 'Approve' } });
    assert.equal((await runner.result(turn)).outcome, 'Succeeded');
    assert.deepEqual(await lastOf(runner), [
      ['a', 'a\n'],
      ['b', 'b\n'],
    ]);
  });

  test('hides the value of a secret in artifacts and counts it, and nothing that only looks like one', async () => {
    const agent = {
      ...text('echo "$KEY token=abcdefgh" > $BERTH_OUTPUT_DIR/file'),
      env: [{ name: 'KEY', secret: 'BERTH_SECRET_0' }],
    };
    await using runner = await RunnerHarness.bound({ agent, bind, env: { BERTH_SECRET_0: 'correct-horse-battery' } });
    assert.equal((await runner.runTurn('')).redactions, 1);
    assert.deepEqual(await lastOf(runner), [['file', '[REDACTED] token=abcdefgh\n']]);
  });

  test('replaces $(BERTH_OUTPUT_DIR) in arguments', async () => {
    const agent = { ...text('echo x > $0/file'), args: ['echo x > $0/file', '$(BERTH_OUTPUT_DIR)'] };
    await using runner = await RunnerHarness.bound({ agent, bind });
    await runner.runTurn('');
    assert.deepEqual(await lastOf(runner), [['file', 'x\n']]);
  });
});

test('a runner that is bound by a controller from before artifacts has no BERTH_OUTPUT_DIR and sends none', async () => {
  await using runner = await RunnerHarness.bound({ agent: text('echo "[$BERTH_OUTPUT_DIR]"') });
  const { outcome, output, artifactsSeq } = await runner.runTurn('');
  assert.deepEqual([outcome, output, artifactsSeq], ['Succeeded', '[]\n', undefined]);
  assert.deepEqual(runner.frames('artifacts'), []);
  assert.ok(!readdirSync(runner.root).includes('output'));
});
