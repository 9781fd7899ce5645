import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { berth, get, kubectl, makeNamespace } from '../support/cluster.ts';

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

  test('run and create take files along with --with: every pod has them, and they go with the session', async (t) => {
    const namespace = await makeNamespace(t);
    const folder = mkdtempSync(join(tmpdir(), 'berth-e2e-with-'));
    t.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'lib'));
    writeFileSync(
      join(folder, 'agent.sh'),
      '. ./lib/greet.sh; greet "$(cat)"; cat .env 2>/dev/null; echo x > new 2>/dev/null || echo "read-only"',
    );
    writeFileSync(join(folder, 'lib', 'greet.sh'), 'greet() { echo "hello $1"; }');
    writeFileSync(join(folder, '.env'), 'TOKEN=secret');
    const flags = ['-n', namespace, '--input-as', 'text', '--result', 'text', '--with', `${folder}/.`];
    const program = ['--', 'sh', 'agent.sh'];

    const once = await berth(['run', ...flags, '--input', '"world"', ...program]);
    assert.equal(once.code, 0, once.stderr);
    assert.equal(once.stdout.trimEnd(), 'hello world\nread-only');

    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await berth(args);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout.trimEnd();
    };
    await run('create', 'kept', ...flags, ...program);
    assert.match(await run('turn', '-n', namespace, 'kept', '--input', '"first"'), /^hello first$/m);
    await run('suspend', '-n', namespace, 'kept');
    assert.match(await run('turn', '-n', namespace, 'kept', '--input', '"second"'), /^hello second$/m);
    const { status } = await get(['session', 'kept', '-n', namespace]);
    assert.equal(status.incarnation, 2);
    assert.deepEqual(
      status.agentFiles.map(({ configMap }: { configMap: string }) => configMap),
      ['kept-files'],
    );

    await kubectl(['delete', 'session', 'kept', '-n', namespace]);
    await eventually(
      async () => {
        const { items } = await get(['configmaps', '-n', namespace, '-l', 'berth.dev/agent-files=true']);
        return !items.some(({ metadata }: { metadata: { name: string } }) => metadata.name === 'kept-files');
      },
      { timeoutMs: 180_000, what: 'the files are gone' },
    );
  });
});
