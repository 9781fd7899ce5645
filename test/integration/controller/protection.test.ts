import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { events } from '../../../core/kube/resources.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { hasKeeper } from '../../support/runner-harness.ts';

const agent = pythonAgent("answer('done')");

describe('what the runners of the embedded cluster report of their protection', () => {
  const cluster = installed(ONE_LEADER, { controller: true });
  const reasonOf = async (session: string, type: string) => {
    const { status } = await cluster.session(session);
    const condition = status?.conditions?.find((one) => one.type === type);
    return condition && `${condition.status}/${condition.reason}`;
  };
  const warnings = async (session: string) => {
    const { items } = await cluster.client.list(events, {
      namespace: 'default',
      fieldSelector: `involvedObject.name=${session}`,
    });
    return items.filter((event) => (event as unknown as { type: string }).type === 'Warning');
  };

  test('is in the conditions of a session, which runs without a warning', async () => {
    await cluster.create('plain', { agent });
    await cluster.turn('plain', 'plain-1', null);
    assert.equal((await cluster.ended('plain-1')).status?.output, 'done');
    await cluster.until('plain', 'is ready', ({ status }) => status?.phase === 'Ready');
    assert.equal(await reasonOf('plain', 'RunnerHardened'), 'False/EmbeddedCluster');
    const contained = hasKeeper ? 'True/AgentContained' : 'False/EmbeddedCluster';
    assert.equal(await reasonOf('plain', 'AgentContained'), contained);
    assert.deepEqual(await warnings('plain'), []);
    await cluster.patch('plain', { suspendRequest: 'now' });
    await cluster.until('plain', 'is suspended', ({ status }) => status?.phase === 'Suspended');
    assert.equal(await reasonOf('plain', 'RunnerHardened'), 'Unknown/NotBound');
  });

  test('ends a turn where its class requires more: once, without its agent, and with the slot free again', async () => {
    await cluster.createClass('strict', { agent: { command: ['true'] }, sandbox: { require: ['RunnerHardened'] } });
    await cluster.create('refused', { class: 'strict' });
    for (const name of ['refused-1', 'refused-2']) {
      await cluster.turn('refused', name, null);
      const { status } = await cluster.ended(name);
      assert.deepEqual(
        [status?.phase, status?.error?.code, status?.startedAt],
        ['Failed', 'RunnerNotHardened', undefined],
      );
      assert.match(status?.error?.message ?? '', /embedded cluster.*Class "strict" requires RunnerHardened/);
      const { status: session } = await cluster.until(
        'refused',
        'has no pod',
        (one) => one.status?.podName === undefined,
      );
      const ready = session?.conditions?.find(({ type }) => type === 'Ready');
      assert.deepEqual([ready?.status, ready?.reason], ['False', 'RunnerNotHardened']);
    }
    assert.deepEqual(await cluster.podsOf('refused'), []);
    await cluster.event('refused', 'RunnerNotHardened');
  });
});
