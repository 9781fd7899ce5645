import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

describe('a turn that runs', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  const directory = mkdtempSync(join(tmpdir(), 'berth-usage-'));
  beforeAll(async () => {
    await cluster.createClass('open', { overrides: ['agent.command', 'agent.args', 'agent.result'] } as never);
  });
  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  test('shows when it was started, its CPU time, its memory and its processes, and what it comes to is its result’s', async () => {
    const go = join(directory, 'go');
    // The script uses CPU time, keeps memory, and then waits.
    const script = `x=$(head -c 20000000 /dev/zero | tr '\\0' a); until [ -e ${go} ]; do sleep 0.2; done; echo \${#x}`;
    const agent = { command: ['/bin/bash', '-c'], args: [script], result: 'Text' };
    await cluster.create('busy', { class: 'open', agent, input: null } as never);
    const { status } = await eventually(
      async () => {
        const turn = await cluster.client.get(turns, { namespace: 'default', name: 'busy' });
        return (turn.status?.usage?.peakMemoryBytes ?? 0) > 20_000_000 ? turn : undefined;
      },
      // A busy machine may show this usage only in the second or third status update.
      { timeoutMs: 120_000, what: 'the turn shows what it uses' },
    );
    assert.deepEqual([status?.phase, status?.finishedAt], ['Running', undefined]);
    const shown = status?.usage;
    assert.ok((shown?.wall ?? 0) >= 9 && (shown?.cpuSeconds ?? 0) > 0, JSON.stringify(shown));
    assert.ok((shown?.processes ?? 0) >= 1, JSON.stringify(shown));

    writeFileSync(go, '');
    const ended = await cluster.ended('busy');
    assert.equal(ended.status?.output, '20000000\n', JSON.stringify(ended.status?.error));
    assert.equal(ended.status?.startedAt, status?.startedAt);
    const { wall = 0, cpuSeconds = 0, peakMemoryBytes = 0 } = ended.status?.usage ?? {};
    assert.ok(wall > (shown?.wall ?? 0) && cpuSeconds >= (shown?.cpuSeconds ?? 0), JSON.stringify(ended.status?.usage));
    assert.ok(peakMemoryBytes >= (shown?.peakMemoryBytes ?? 0), JSON.stringify(ended.status?.usage));
  });
});
