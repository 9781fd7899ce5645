import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { ControllerProcess } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { ASKS, asked, asksAndKeepsPod, decide, outputOf, SCRATCH } from './support.ts';

describe('an agent that asks by its envelope', () => {
  const cluster = installed();
  let controller: ControllerProcess;
  beforeAll(() => {
    controller = cluster.startController();
  });

  test.concurrent('is told the decision with the next request of the same turn', async () => {
    await cluster.create('asks', { agent: ASKS });
    await cluster.turn('asks', 'asks-1', { questions: ['May I?'] });
    const waiting = await asked(cluster, 'asks-1');
    const { approval, phase, conditions, startedAt } = waiting.status ?? {};
    assert.equal(phase, 'AwaitingApproval');
    assert.deepEqual([approval?.prompt, approval?.payload, approval?.process], ['May I?', { number: 1 }, 'Ended']);
    assert.equal(conditions?.find(({ type }) => type === 'Finished')?.reason, 'AwaitingApproval');
    const session = await cluster.until('asks', 'asking', ({ status }) => status?.phase === 'AwaitingApproval');
    const pending = session.status?.conditions?.find(({ type }) => type === 'ApprovalPending');
    assert.equal(pending?.status, 'True');
    assert.match(pending?.message ?? '', /asks-1 asks \(request [0-9a-f]{16}\): May I\?/);
    await cluster.event('asks', 'AwaitingApproval');

    await decide(cluster, waiting, { decision: 'Approve', response: { budget: 5 }, note: 'fine' });
    const turn = await cluster.ended('asks-1');
    assert.equal(turn.status?.phase, 'Succeeded', JSON.stringify(turn.status));
    assert.deepEqual(turn.status?.output, {
      told: [{ decision: 'Approve', response: { budget: 5 }, note: 'fine' }],
      restored: false,
      incarnation: 1,
    });
    assert.equal(turn.status?.startedAt, startedAt);
    assert.deepEqual(turn.status?.approval?.decided?.decision, 'Approve');
    assert.equal(turn.status?.log?.inline, 'leg 0\nleg 1\n');
    const done = await cluster.until('asks', 'counted', ({ status }) => status?.turns?.total === 1);
    assert.equal(done.status?.conditions?.find(({ type }) => type === 'ApprovalPending')?.status, 'False');
  });

  test.concurrent('goes on when it is denied, and is told so', async () => {
    await cluster.create('denied', { agent: ASKS });
    await cluster.turn('denied', 'denied-1', { questions: ['May I?'] });
    await decide(cluster, await asked(cluster, 'denied-1'), { decision: 'Deny' });
    const turn = await cluster.ended('denied-1');
    assert.deepEqual(outputOf<{ told: unknown }>(turn).told, [{ decision: 'Deny' }]);
  });

  test.concurrent('asks several times in one turn, one after the other', async () => {
    await cluster.create('twice', { agent: ASKS });
    await cluster.turn('twice', 'twice-1', { questions: ['One?', 'Two?', 'Three?'] });
    const ids = new Set<string>();
    for (const [index, prompt] of ['One?', 'Two?', 'Three?'].entries()) {
      const waiting = await asked(cluster, 'twice-1', prompt);
      ids.add(waiting.status?.approval?.id ?? '');
      await decide(cluster, waiting, { decision: 'Approve', response: index });
    }
    const turn = await cluster.ended('twice-1');
    assert.equal(ids.size, 3);
    assert.deepEqual(
      outputOf<{ told: { response: number }[] }>(turn).told.map(({ response }) => response),
      [0, 1, 2],
    );
    assert.equal(turn.status?.attempt, 1);
  });

  test.concurrent('turns behind it wait, and run after it', async () => {
    await cluster.create('behind', { agent: ASKS });
    await cluster.turn('behind', 'behind-1', { questions: ['May I?'] });
    await cluster.turn('behind', 'behind-2', { questions: [] });
    const waiting = await asked(cluster, 'behind-1');
    assert.equal(
      (await cluster.turnUntil('behind-2', 'queued', ({ status }) => status?.phase === 'Queued')).status?.index,
      2,
    );
    await decide(cluster, waiting, { decision: 'Approve' });
    await cluster.ended('behind-1');
    assert.equal((await cluster.ended('behind-2')).status?.phase, 'Succeeded');
  });

  test.concurrent('an Approval for another request changes nothing, and people are told', async () => {
    await cluster.create('other', { agent: ASKS });
    await cluster.turn('other', 'other-1', { questions: ['May I?'] });
    const waiting = await asked(cluster, 'other-1');
    await decide(cluster, waiting, { decision: 'Approve', requestId: '0123456789abcdef' });
    await cluster.event('other', 'ApprovalIgnored');
    assert.equal((await asked(cluster, 'other-1')).status?.phase, 'AwaitingApproval');
    await decide(cluster, waiting, { decision: 'Approve' });
    assert.equal((await cluster.ended('other-1')).status?.phase, 'Succeeded');
  });

  test.concurrent('a turn that nobody decides on fails after timeouts.approval, and its timeout does not run meanwhile', async () => {
    await cluster.createClass('impatient', {
      overrides: ['agent.command', 'timeouts'],
      timeouts: { approval: '13s', turn: '12s' },
    });
    await cluster.create('late', { class: 'impatient', agent: ASKS });
    await cluster.turn('late', 'late-1', { questions: ['May I?'] });
    const turn = await cluster.ended('late-1');
    assert.deepEqual([turn.status?.phase, turn.status?.error?.code], ['Failed', 'ApprovalTimeout']);
    assert.match(turn.status?.error?.message ?? '', /timeouts\.approval \(13s\) on: May I\?/);
  });

  test.concurrent('a turn that waits is cancelled at once', async () => {
    await cluster.create('cancels', { agent: ASKS });
    await cluster.turn('cancels', 'cancels-1', { questions: ['May I?'] });
    await asked(cluster, 'cancels-1');
    await cluster.cancel('cancels-1');
    assert.equal((await cluster.ended('cancels-1')).status?.phase, 'Cancelled');
  });

  test.concurrent('survives its pod: the decision comes in the next incarnation, without a restore note', async () => {
    await cluster.create('lost', { agent: ASKS });
    await cluster.turn('lost', 'lost-1', { questions: ['May I?'] });
    const waiting = await asked(cluster, 'lost-1');
    const [pod] = await cluster.podsOf('lost');
    assert.ok(pod);
    await cluster.kill(pod);
    await cluster.until('lost', 'without a pod', ({ status }) => status?.podName === undefined);
    assert.equal((await asked(cluster, 'lost-1')).status?.phase, 'AwaitingApproval');
    assert.equal((await cluster.session('lost')).status?.phase, 'AwaitingApproval');
    await decide(cluster, waiting, { decision: 'Approve' });
    const turn = await cluster.ended('lost-1');
    assert.deepEqual(turn.status?.output, { told: [{ decision: 'Approve' }], restored: false, incarnation: 2 });
    await cluster.turn('lost', 'lost-2', { questions: [] });
    const next = await cluster.ended('lost-2');
    assert.equal(outputOf<{ restored: boolean }>(next).restored, true);
  });

  test.concurrent('is suspended while it waits when people ask for it, and woken by the decision alone', async () => {
    await cluster.create('rests', { agent: ASKS });
    await cluster.turn('rests', 'rests-1', { questions: ['May I?'] });
    const waiting = await asked(cluster, 'rests-1');
    await cluster.patch('rests', { suspendRequest: 'now' });
    const session = await cluster.until('rests', 'without a pod', ({ status }) => status?.podName === undefined);
    assert.equal(session.status?.conditions?.find(({ type }) => type === 'Suspended')?.status, 'True');
    await decide(cluster, waiting, { decision: 'Approve' });
    const turn = await cluster.ended('rests-1');
    assert.equal(outputOf<{ incarnation: number }>(turn).incarnation, 2);
  });

  test.concurrent('is suspended once for one request, though the turn asks again', async () => {
    await cluster.create('once', { agent: ASKS });
    await cluster.turn('once', 'once-1', { questions: ['One?', 'Two?'] });
    const first = await asked(cluster, 'once-1', 'One?');
    await cluster.patch('once', { suspendRequest: 'now' });
    const { status } = await cluster.until('once', 'without a pod', ({ status }) => status?.podName === undefined);
    assert.deepEqual(status?.suspendHandled, { id: 'now', afterTurn: 1, done: true });
    await decide(cluster, first, { decision: 'Approve', response: 1 });
    await asksAndKeepsPod(cluster, 'once', 2);
    await decide(cluster, await asked(cluster, 'once-1', 'Two?'), { decision: 'Approve', response: 2 });
    const { told, incarnation } = outputOf<{ told: unknown[]; incarnation: number }>(await cluster.ended('once-1'));
    assert.deepEqual([told.length, incarnation], [2, 2]);
    const rested = await cluster.until('once', 'counted', (session) => session.status?.turns?.total === 1);
    assert.equal(rested.status?.phase, 'Ready');
  });

  const logged = {
    'request committed': '"phase":"AwaitingApproval","request"',
    'decision taken': '"msg":"decision taken"',
  };
  for (const moment of ['request committed', 'decision taken'] as const) {
    test(`a controller that is killed right after "${moment}" tells the decision once`, async () => {
      const name = `at-${moment.replaceAll(' ', '-')}`;
      await cluster.create(name, { agent: ASKS });
      const before = controller.log().split(logged[moment]).length;
      const happened = () => controller.log().split(logged[moment]).length > before;
      await cluster.turn(name, `${name}-1`, { questions: ['May I?', 'And again?'] });
      const kill = async () => {
        await eventually(happened, { what: moment });
        await controller.kill('SIGKILL');
        controller = cluster.startController();
      };
      if (moment === 'request committed') await kill();
      const waiting = await asked(cluster, `${name}-1`, 'May I?');
      await decide(cluster, waiting, { decision: 'Approve', response: 1 });
      if (moment === 'decision taken') await kill();
      await decide(cluster, await asked(cluster, `${name}-1`, 'And again?'), { decision: 'Deny', response: 2 });
      const turn = await cluster.ended(`${name}-1`);
      assert.deepEqual(outputOf<{ told: unknown }>(turn).told, [
        { decision: 'Approve', response: 1 },
        { decision: 'Deny', response: 2 },
      ]);
    });
  }

  test.concurrent('gives up its slot at capacity after the class’s approvalWindow, and waits for one with the decision', async () => {
    const overrides: ['agent.command'] = ['agent.command'];
    await cluster.createClass('narrow', { overrides, limits: { maxRunning: 1 }, approvalWindow: '2s' });
    await cluster.create('polite', { class: 'narrow', agent: ASKS });
    await cluster.turn('polite', 'polite-1', { questions: ['May I?'] });
    const waiting = await asked(cluster, 'polite-1');
    await cluster.create('eager', { class: 'narrow', agent: ASKS, turns: 'One', input: { questions: [], linger: 1 } });
    await cluster.until('polite', 'without a pod', ({ status }) => status?.podName === undefined);
    assert.equal((await asked(cluster, 'polite-1')).status?.approval?.id, waiting.status?.approval?.id);
    await decide(cluster, waiting, { decision: 'Approve' });
    assert.equal((await cluster.ended('eager')).status?.phase, 'Succeeded');
    const turn = await cluster.ended('polite-1');
    assert.deepEqual(turn.status?.output, { told: [{ decision: 'Approve' }], restored: false, incarnation: 2 });
  });

  test.concurrent('a pod that is lost after the decision was taken is PodLost', async () => {
    await cluster.create('after', { agent: ASKS });
    await cluster.turn('after', 'after-1', { questions: ['May I?'], linger: 30 });
    await decide(cluster, await asked(cluster, 'after-1'), { decision: 'Approve' });
    await cluster.turnUntil('after-1', 'running', ({ status }) => status?.phase === 'Running');
    const [pod] = await cluster.podsOf('after');
    assert.ok(pod);
    await eventually(() => existsSync(join(SCRATCH, 'after-1-told')), { what: 'told' });
    await cluster.kill(pod);
    assert.equal((await cluster.ended('after-1')).status?.error?.code, 'PodLost');
  });
});
