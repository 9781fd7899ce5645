import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { ControllerProcess } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { ASKS_ALIVE, asked, asksAndKeepsPod, decide, SCRATCH } from './support.ts';

describe('an agent whose process waits for the decision', () => {
  const cluster = installed();
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });
  /** Decisions that the agent received. Each line begins with the process that received it. */
  const told = (turn: string) =>
    readFileSync(join(SCRATCH, `${turn}-alive`), 'utf8')
      .trim()
      .split('\n');

  test('is told it where it waits, several times in a turn', async () => {
    await cluster.create('alive', { agent: ASKS_ALIVE });
    await cluster.turn('alive', 'alive-1', { questions: ['One?', 'Two?'] });
    for (const prompt of ['One?', 'Two?']) {
      const waiting = await asked(cluster, 'alive-1', prompt);
      assert.equal(waiting.status?.approval?.process, 'Alive');
      await decide(cluster, waiting, { decision: 'Approve', response: prompt });
    }
    const turn = await cluster.ended('alive-1');
    assert.deepEqual(turn.status?.output, { told: ['One?', 'Two?'], incarnation: 1 }, JSON.stringify(turn.status));
    assert.equal(new Set(told('alive-1').map((line) => line.split(' ')[0])).size, 1);
  });

  test('is told in another incarnation when its pod was lost before the decision', async () => {
    await cluster.create('moved', { agent: ASKS_ALIVE });
    await cluster.turn('moved', 'moved-1', { questions: ['One?', 'Two?'] });
    await decide(cluster, await asked(cluster, 'moved-1', 'One?'), { decision: 'Approve', response: 1 });
    const waiting = await asked(cluster, 'moved-1', 'Two?');
    const [pod] = await cluster.podsOf('moved');
    assert.ok(pod);
    await cluster.kill(pod);
    await cluster.until('moved', 'without a pod', ({ status }) => status?.podName === undefined);
    await decide(cluster, waiting, { decision: 'Approve', response: 2 });
    const turn = await cluster.ended('moved-1');
    assert.deepEqual(turn.status?.output, { told: [1, 2], incarnation: 2 }, JSON.stringify(turn.status));
  });

  test('is stopped when its session is suspended, and told by the request of another process', async () => {
    await cluster.create('stopped', { agent: ASKS_ALIVE });
    await cluster.turn('stopped', 'stopped-1', { questions: ['One?'] });
    const waiting = await asked(cluster, 'stopped-1');
    await cluster.patch('stopped', { suspendRequest: 'now' });
    await cluster.until('stopped', 'without a pod', ({ status }) => status?.podName === undefined);
    assert.equal((await asked(cluster, 'stopped-1')).status?.phase, 'AwaitingApproval');
    await decide(cluster, waiting, { decision: 'Deny', response: 'no' });
    const turn = await cluster.ended('stopped-1');
    assert.deepEqual(turn.status?.output, { told: ['no'], incarnation: 2 }, JSON.stringify(turn.status));
  });

  test('is stopped once for one request to suspend, though it asks again', async () => {
    await cluster.create('once', { agent: ASKS_ALIVE });
    await cluster.turn('once', 'once-1', { questions: ['One?', 'Two?'] });
    const first = await asked(cluster, 'once-1', 'One?');
    await cluster.patch('once', { suspendRequest: 'now' });
    await cluster.until('once', 'without a pod', ({ status }) => status?.podName === undefined);
    await decide(cluster, first, { decision: 'Approve', response: 1 });
    await asksAndKeepsPod(cluster, 'once', 2);
    await decide(cluster, await asked(cluster, 'once-1', 'Two?'), { decision: 'Approve', response: 2 });
    const turn = await cluster.ended('once-1');
    assert.deepEqual(turn.status?.output, { told: [1, 2], incarnation: 2 }, JSON.stringify(turn.status));
  });

  test('is lost with its pod once the decision was taken', async () => {
    await cluster.create('gone', { agent: ASKS_ALIVE });
    await cluster.turn('gone', 'gone-1', { questions: ['One?'], linger: 30 });
    await decide(cluster, await asked(cluster, 'gone-1'), { decision: 'Approve', response: 1 });
    await eventually(() => told('gone-1').length === 1, { what: 'told' });
    const [pod] = await cluster.podsOf('gone');
    assert.ok(pod);
    await cluster.kill(pod);
    assert.equal((await cluster.ended('gone-1')).status?.error?.code, 'PodLost');
    assert.equal(told('gone-1').length, 1);
  });

  test('is cancelled with its process', async () => {
    await cluster.create('cancelled', { agent: ASKS_ALIVE });
    await cluster.turn('cancelled', 'cancelled-1', { questions: ['One?'] });
    await asked(cluster, 'cancelled-1');
    await cluster.cancel('cancelled-1');
    assert.equal((await cluster.ended('cancelled-1')).status?.phase, 'Cancelled');
    await cluster.turn('cancelled', 'cancelled-2', { questions: [] });
    assert.equal((await cluster.ended('cancelled-2')).status?.phase, 'Succeeded');
  });

  test('may end without the decision', async () => {
    await cluster.create('leaves', { agent: ASKS_ALIVE });
    await cluster.turn('leaves', 'leaves-1', { questions: [], background: 'Still there?' });
    const turn = await cluster.ended('leaves-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
  });

  test('is stopped when nobody decides in time', async () => {
    await cluster.createClass('hasty', { overrides: ['agent.command'], timeouts: { approval: '2s' } });
    await cluster.create('timed', { class: 'hasty', agent: ASKS_ALIVE });
    await cluster.turn('timed', 'timed-1', { questions: ['One?'] });
    await cluster.turn('timed', 'timed-2', { questions: [] });
    assert.equal((await cluster.ended('timed-1')).status?.error?.code, 'ApprovalTimeout');
    assert.equal((await cluster.ended('timed-2')).status?.phase, 'Succeeded');
  });

  const logged = {
    'request committed': '"phase":"AwaitingApproval","request"',
    'decision taken': '"msg":"decision taken"',
  };
  for (const moment of ['request committed', 'decision taken'] as const) {
    test(`a controller that is killed right after "${moment}" tells the decision once`, async () => {
      const name = `live-${moment.replaceAll(' ', '-')}`;
      const count = () => controller.log().split(logged[moment]).length;
      const before = count();
      const kill = async () => {
        await eventually(() => count() > before, { what: moment });
        await controller.kill('SIGKILL');
        controller = cluster.startController();
      };
      await cluster.create(name, { agent: ASKS_ALIVE });
      await cluster.turn(name, `${name}-1`, { questions: ['One?', 'Two?'] });
      if (moment === 'request committed') await kill();
      await decide(cluster, await asked(cluster, `${name}-1`, 'One?'), { decision: 'Approve', response: 1 });
      if (moment === 'decision taken') await kill();
      await decide(cluster, await asked(cluster, `${name}-1`, 'Two?'), { decision: 'Approve', response: 2 });
      const turn = await cluster.ended(`${name}-1`);
      assert.deepEqual(turn.status?.output, { told: [1, 2], incarnation: 1 }, JSON.stringify(turn.status));
      assert.equal(told(`${name}-1`).length, 2);
    });
  }
});
