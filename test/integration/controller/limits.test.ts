import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const shell = (script: string) => ({ command: ['/bin/bash', '-c'], args: [script], result: 'Text' });

describe('a class’s limits and patterns', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  beforeAll(async () => {
    await cluster.createClass('small', {
      sandbox: { preset: 'Strict', limits: { processes: 5, fileSize: '1Ki' } },
      redact: ['acme-[0-9]{6}'],
      overrides: ['agent.command', 'agent.args', 'agent.result'],
    } as never);
  });

  const run = async (name: string, of: string, script: string) => {
    await cluster.create(name, { class: of, agent: shell(script), input: null } as never);
    return cluster.ended(name);
  };

  test('hold for the agent, and what the turn used stands in its status', async () => {
    const { status } = await run('fits', 'small', 'ulimit -f; ulimit -c; ulimit -t; echo acme-123456');
    assert.equal(status?.phase, 'Succeeded', JSON.stringify(status?.error));
    assert.equal(status?.output, '1\n0\n300\n[REDACTED]\n');
    const { wall = 0, cpuSeconds = 0, peakMemoryBytes = 0, processes } = status?.usage ?? {};
    assert.ok(wall > 0 && wall < 30 && cpuSeconds > 0 && cpuSeconds < 5, JSON.stringify(status?.usage));
    assert.ok(peakMemoryBytes > 100_000 && processes === 1, JSON.stringify(status?.usage));
  });

  test('end a turn that is over one, by name', async () => {
    const { status } = await run('many', 'small', 'for i in {1..20}; do sleep 60 & done; wait');
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'TooManyProcesses']);
  });

  test('of the session’s memory hold without a cgroup: the turn above it fails, and the next runs in the same pod', async () => {
    const grow = `python3 -c 'import time; kept = bytearray(b"1") * 600000000; time.sleep(600)'`;
    const agent = shell(`[ "$BERTH_TURN" = greedy-1 ] && exec ${grow}; echo went on`);
    await cluster.create('greedy', { agent, resources: { limits: { memory: '256Mi' } } } as never);
    await cluster.turn('greedy', 'greedy-1', null);
    await cluster.turn('greedy', 'greedy-2', null);
    const { status: first } = await cluster.ended('greedy-1');
    assert.deepEqual([first?.phase, first?.error?.code], ['Failed', 'MemoryLimit']);
    assert.match(first?.error?.message ?? '', /^the pod used \d+ of the 268435456 bytes .*resources\.limits\.memory/);
    const { status: second } = await cluster.ended('greedy-2');
    assert.deepEqual([second?.output, second?.podUID], ['went on\n', first?.podUID]);
  });

  test('keep the agent from being started where one cannot be set', async () => {
    await cluster.createClass('unlimited', {
      sandbox: { limits: { openFiles: 2_000_000_000 } },
      overrides: ['agent.command', 'agent.args', 'agent.result'],
    } as never);
    const { status } = await run('unset', 'unlimited', 'echo ran');
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'LimitNotSet']);
    assert.match(status?.error?.message ?? '', /^sandbox\.limits\.openFiles cannot be set/);
  });

  test('that cannot work are ClassInvalid, and the field is named', async () => {
    await cluster.createClass('hangs', {
      redact: ['(a+)+b'],
      overrides: ['agent.command', 'agent.args', 'agent.result'],
    } as never);
    await cluster.create('waits', { class: 'hangs', agent: shell('true') } as never);
    const { status } = await cluster.until('waits', 'is refused', (session) =>
      Boolean(session.status?.conditions?.some(({ reason }) => reason === 'ClassInvalid')),
    );
    const condition = status?.conditions?.find(({ reason }) => reason === 'ClassInvalid');
    assert.match(condition?.message ?? '', /^spec\.redact\[0\]: at character 3: "\+" has no end/);
  });
});
