import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AgentSpec } from '../../../core/frames/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { hasKeeper, RunnerHarness } from '../../support/runner-harness.ts';

assert.ok(hasKeeper, 'build the keeper first: make keeper');

const MB = 1_000_000;
/** Memory of the pod, of which the runner takes some 40 MB itself. */
const LIMIT = 300 * MB;

const bound = (script: string, agent: Partial<AgentSpec> = {}, options = {}) =>
  RunnerHarness.bound({
    env: { BERTH_LOCAL_MEMORY: String(LIMIT) },
    bind: { limits: { required: false } },
    agent: { command: ['/bin/bash', '-c'], args: [script], result: 'Text', ...agent },
    ...options,
  });

const python = (bytes: number, then = 'time.sleep(600)') =>
  `python3 -c 'import time; kept = bytearray(b"1") * ${bytes}; ${then}'`;

describe('the memory limit of a pod without a cgroup', () => {
  for (const processGroup of [false, true]) {
    test(`stops the turn that exceeds it, and the next one runs, ${processGroup ? 'without' : 'with'} a keeper`, async () => {
      const script = `[ "$BERTH_TURN" = turn-1 ] || exit 0; ${python(600 * MB)}`;
      await using runner = await bound(script, {}, { processGroup });
      const { outcome, error } = await runner.runTurn();
      assert.deepEqual([outcome, error?.code], ['Failed', 'MemoryLimit']);
      assert.match(error?.message ?? '', /^the pod used \d+ of the 300000000 bytes .*resources\.limits\.memory/);
      await eventually(() => runner.processes().length === 0, { what: 'the processes’ end' });
      assert.equal((await runner.runTurn()).outcome, 'Succeeded');
    });
  }

  test('leaves alone what stays below it', async () => {
    await using runner = await bound(python(150 * MB, 'print("kept")'));
    assert.equal((await runner.runTurn()).output, 'kept\n');
  });

  test('is for all processes together, those that detached themselves too', async () => {
    const each = python(60 * MB);
    await using runner = await bound(`for i in {1..8}; do (setsid ${each} &) ; done; exec sleep 600`);
    assert.equal((await runner.runTurn()).error?.code, 'MemoryLimit');
    await eventually(() => runner.processes().length === 0, { what: 'the processes’ end' });
  });

  test('counts what earlier turns left, and stops the largest of all', async () => {
    // The first turn ends once what it leaves has its memory.
    const small = `${python(60 * MB, 'open("ready", "w"); time.sleep(600)')} >/dev/null 2>&1 &`;
    const first = `${small} until [ -e ready ]; do sleep 0.05; done; exit 0`;
    // It grows slowly, so that it is known to be the largest when the limit is reached.
    const grow = `for _ in range(60): kept += b"1" * ${10 * MB}; time.sleep(0.1)`;
    const script = `[ "$BERTH_TURN" = turn-1 ] && { ${first}; }; ${python(1, `\n${grow}`)}`;
    await using runner = await bound(script);
    assert.equal((await runner.runTurn()).outcome, 'Succeeded');
    const left = () => runner.processes().map(({ pid }) => pid);
    await eventually(() => left().length === 1, { what: 'the one that is left' });
    const earlier = left();
    assert.equal((await runner.runTurn()).error?.code, 'MemoryLimit');
    assert.deepEqual(left(), earlier);
  });

  test('fails a call of a tool, and its turn goes on', async () => {
    const tool = (name: string, script: string) => ({
      name,
      description: '',
      parameters: { type: 'object' },
      command: ['/bin/bash', '-c', script],
      timeoutMs: 60_000,
    });
    await using runner = await bound('', {
      driver: 'Tools',
      command: [],
      args: [],
      result: 'Json',
      tools: [tool('grow', python(600 * MB)), tool('rest', 'read line; echo 1')],
    });
    const call = (name: string) => ({ tool: name, args: {}, call_id: name });
    const { outcome, output } = await runner.runTurn({ calls: [call('grow'), call('rest')] });
    assert.equal(outcome, 'Succeeded', JSON.stringify(output));
    const { results } = output as { results: { status: string; error?: { code: string } }[] };
    assert.deepEqual(
      results.map(({ status, error }) => error?.code ?? status),
      ['MemoryLimit', 'success'],
    );
  });
});
