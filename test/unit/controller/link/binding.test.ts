import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { PodRunner } from '../../../support/pod-runner.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { BIND, bound, setUp, TURN } from './support.ts';

test('a runner has answered once it knows this leader: with the answer to its ping, and to no other', async () => {
  const { clock, pod, link } = setUp();
  await clock.advance(200);
  const answered: [LinkView['phase'], boolean][] = [];
  pod.loses = 'ping';
  link.bind({ ...BIND, agent: { ...BIND.agent, command: ['agent'], args: [], env: [] } });
  await clock.advance(10);
  answered.push([link.view.phase, link.view.answered === true]);
  pod.loses = undefined;
  await clock.advance(60_000);
  answered.push([link.view.phase, link.view.answered === true]);
  assert.deepEqual(answered, [
    ['Bound', false],
    ['Bound', true],
  ]);
});

test('a runner that is bound to another session is foreign', async () => {
  const { clock, pod } = await bound();
  const other = setUp({ session: 'session-2', pod, clock });
  await clock.advance(1000);
  assert.equal(other.link.view.phase, 'Foreign');
});

test('a runner that is bound to another incarnation, or in another pod of the name, is foreign and gives nothing', async () => {
  for (const change of [{ incarnation: 2 }, { podUID: 'pod-2' }]) {
    const { clock, pod, link } = await bound();
    link.startTurn(TURN);
    await clock.advance(10);
    link.close();
    const other = setUp({ ...change, pod, clock });
    await clock.advance(1000);
    pod.finish('for the first');
    await clock.advance(1000);
    assert.deepEqual([other.link.view.phase, other.link.view.delivery], ['Foreign', undefined]);
    other.link.startTurn({ ...TURN, turn: 'turn-2' });
    await clock.advance(1000);
    assert.deepEqual(pod.given, ['turn-1']);
  }
});

test('a successor learns what runs from a runner that is bound already', async () => {
  const first = await bound();
  first.link.startTurn(TURN);
  await first.clock.advance(10);
  first.link.close();
  const second = setUp({ pod: first.pod, clock: first.clock, epoch: 6 });
  await first.clock.advance(1000);
  assert.equal(second.link.view.phase, 'Bound');
  assert.equal(second.link.view.resumed, true);
  assert.equal(second.link.view.active, 'turn-1');
  first.pod.finish('for the second');
  await first.clock.advance(10);
  assert.equal(second.link.view.delivery?.result.message.output, 'for the second');
});

test('answers of a runner to an earlier leader are not taken for its present state', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(100_000);
  link.suspend(undefined);
  await clock.advance(10);
  assert.equal(link.view.suspended, true);
  link.resume();
  const idleSince = link.view.lastActivity as number;
  link.close();
  const views: LinkView[] = [];
  setUp({ clock, pod, epoch: 6, onChange: (view) => views.push(view) });
  await clock.advance(1000);
  assert.equal(views.at(-1)?.phase, 'Bound');
  for (const { lastActivity = idleSince, suspended } of views) {
    assert.ok(Math.abs(lastActivity - idleSince) <= 20, `it rests since ${idleSince}, not ${lastActivity}`);
    assert.equal(suspended, false);
  }
});

test("times of a runner are converted to the controller's clock, whatever the runner's clock says", async () => {
  for (const skew of [-3_600_000, 3_600_000]) {
    const clock = new VirtualClock();
    let jump = 0;
    const own = {
      now: () => clock.now() + skew + jump,
      monotonic: () => clock.monotonic(),
      setTimer: clock.setTimer.bind(clock),
    };
    const pod = new PodRunner(own, seededRandom());
    const first = await bound({ clock, pod });
    first.link.startTurn(TURN);
    await clock.advance(10);
    const { started } = first.link.view;
    assert.ok(Math.abs(Date.parse(started?.at ?? '') - clock.now()) <= 20, started?.at);

    jump = skew;
    await clock.advance(40_000);
    first.link.close();
    const second = setUp({ pod, clock, epoch: 6 });
    await clock.advance(1000);
    const again = Date.parse(second.link.view.started?.at ?? '');
    assert.ok(Math.abs(again - Date.parse(started?.at ?? '')) <= 20, `${again}`);
    assert.ok(Math.abs((second.link.view.lastActivity ?? 0) - again) <= 1100);
  }
});
