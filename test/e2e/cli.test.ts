import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { berth, get, makeNamespace } from './support/cluster.ts';

describe('the CLI', () => {
  test('run prints the output and nothing else on stdout', async (t) => {
    const namespace = await makeNamespace(t);
    const program = ['sh', '-c', 'echo noise >&2; cat'];
    const { code, stdout, stderr } = await berth([
      ...['run', '-n', namespace, '--input', '"hello"', '--input-as', 'text', '--result', 'text', '--', ...program],
    ]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout.trimEnd(), 'hello');
  });

  test('run ends with 1 when the run failed and with 124 when it timed out', async (t) => {
    const namespace = await makeNamespace(t);
    const flags = ['run', '-n', namespace, '--input', '""', '--input-as', 'text', '--result', 'text'];
    const failed = await berth([...flags, '--', 'sh', '-c', 'exit 4']);
    assert.equal(failed.code, 1);
    assert.equal(failed.stdout.trim(), '');
    assert.match(failed.stderr, /exit code 4/);
    const late = await berth([...flags, '--timeout', '1s', '--', 'sleep', '600']);
    assert.equal(late.code, 124, late.stderr);
  });

  test('an output beyond 16 KiB arrives whole', async (t) => {
    const namespace = await makeNamespace(t);
    const program = ['sh', '-c', 'seq 1 20000'];
    const flags = ['run', '-n', namespace, '--input', '""', '--input-as', 'text', '--result', 'text'];
    const { code, stdout, stderr } = await berth([...flags, '--', ...program]);
    assert.equal(code, 0, stderr);
    const lines = stdout.trimEnd().split('\n');
    assert.equal(lines.length, 20_000);
    assert.equal(lines.at(-1), '20000');
  });

  test('a session is suspended and wakes for its next turn with what it had noted', async (t) => {
    const namespace = await makeNamespace(t);
    const script = 'cat >> "$BERTH_STATE_DIR/notes"; cat "$BERTH_STATE_DIR/notes"';
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await berth(['-n', namespace, ...args]);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout.trimEnd();
    };
    await run('create', 'notes', '--input-as', 'text', '--result', 'text', '--', 'sh', '-c', script);
    assert.equal(await run('turn', 'notes', '--input', '"one "'), 'one');
    await run('suspend', 'notes');
    const pods = await get(['pods', '-n', namespace]);
    assert.deepEqual(pods.items, []);
    const asleep = await get(['session', 'notes', '-n', namespace]);
    assert.equal(asleep.status.phase, 'Suspended');
    assert.equal(await run('turn', 'notes', '--input', '"two"'), 'one two');
    const awake = await get(['session', 'notes', '-n', namespace]);
    assert.equal(awake.status.incarnation, asleep.status.incarnation + 1);
    assert.match(await run('list'), /notes/);
    await run('delete', 'notes');
  });
});
