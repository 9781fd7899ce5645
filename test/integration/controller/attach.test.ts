import assert from 'node:assert/strict';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type ControllerProcess, ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { metricsOf, samplesOf } from '../../support/metrics.ts';

/** Runs what its turn brings. */
const agent = { command: ['/bin/sh', '-c'], args: ['$(INPUT)'], input: 'Args' as const, result: 'Text' as const };

describe('the attach of an idle session', () => {
  const cluster = installed({ ...ONE_LEADER, BERTH_ATTACH_LINGER: '1s' });
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  const closed = () =>
    eventually(async () => samplesOf(await metricsOf(controller), 'berth_attaches')[''] === 0, {
      what: 'no pod is attached',
    });
  const run = async (name: string, script: string) => {
    await cluster.turn('quiet', name, script);
    return (await cluster.ended(name)).status;
  };

  test('is closed, and opened for its next turn in the same pod and for its suspension', async () => {
    await cluster.create('quiet', { agent });
    const first = await run('quiet-1', 'echo one > "$BERTH_STATE_DIR/note"');
    await closed();
    const second = await run('quiet-2', 'cat "$BERTH_STATE_DIR/note"');
    assert.deepEqual([second?.output, second?.podUID], ['one\n', first?.podUID]);
    await closed();
    await cluster.patch('quiet', { timeouts: { idle: '1s' } });
    await eventually(async () => (await cluster.session('quiet')).status?.phase === 'Suspended', { what: 'Suspended' });
    const third = await run('quiet-3', 'cat "$BERTH_STATE_DIR/note"');
    assert.equal(third?.output, 'one\n');
    assert.notEqual(third?.podUID, first?.podUID);
  });
});
