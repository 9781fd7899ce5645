import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { LinkView } from '../../../../controller/observed/link-view.ts';
import { bound, setUp, TURN } from './support.ts';

test('a turn goes down and its result comes up', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.started?.turn, 'turn-1');
  pod.finish({ answer: 42 });
  await clock.advance(10);
  assert.deepEqual(link.view.delivery?.result.message.output, { answer: 42 });
});

test('a result that was printed while nobody was attached is fetched by the next attach', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.drop();
  pod.finish('unseen');
  await clock.advance(0);
  assert.equal(Boolean(link.view.delivery), false);
  await clock.advance(1000);
  assert.equal(link.view.delivery?.result.message.output, 'unseen');
});

test('frames behind one that was torn ask for it once, and again when it has not come within a second', async () => {
  const { clock, pod, link } = await bound();
  pod.loses = 'resend';
  pod.resends = 0;
  pod.tears = true;
  for (const turn of ['a', 'b', 'c', 'd']) {
    link.cancel(turn);
    await clock.advance(10);
  }
  assert.deepEqual([pod.resends, link.view.refused], [1, undefined]);
  pod.loses = undefined;
  await clock.advance(1000);
  assert.deepEqual([pod.resends, link.view.refused?.code], [2, 'UnknownTurn']);
});

test('after its acknowledgement a result does not come again', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.finish('x');
  await clock.advance(10);
  link.acknowledge(link.view.delivery!.result.seq);
  assert.equal(link.view.delivery, undefined);
  pod.drop();
  await clock.advance(1000);
  assert.equal(link.view.delivery, undefined);
});

test('a turn whose line was lost shows as not active after the next ping', async () => {
  const { clock, pod, link } = await bound();
  pod.deaf = true;
  link.startTurn(TURN);
  assert.equal(link.view.active, 'turn-1');
  await clock.advance(10);
  pod.deaf = false;
  await clock.advance(60_000);
  assert.deepEqual(pod.given, []);
  assert.equal(link.view.active, undefined);
  assert.ok(link.view.sent.has('turn-1'), 'that it was once sent is not forgotten');
});

test('a turn that the runner says it does not have is not active, also where the ping after that is lost', async () => {
  const { clock, pod, link } = await bound();
  pod.loses = 'turn';
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.active, 'turn-1');
  pod.loses = 'ping';
  link.cancel('turn-1');
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, link.view.active], ['UnknownTurn', undefined]);
});

test('a turn that is sent twice runs once', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a turn whose end is acknowledged is not taken to run because of an answer that was given before', async () => {
  const first = await bound();
  first.link.startTurn(TURN);
  await first.clock.advance(10);
  first.link.close();
  first.pod.finish('done');
  // The answer to the ping that begins every attach follows the result: the runner had no acknowledgement when it answered.
  let hasEnded = false;
  const onChange = ({ delivery }: LinkView) => {
    if (!delivery) return;
    hasEnded = true;
    second.link.acknowledge(delivery.result.seq);
  };
  const second = setUp({ pod: first.pod, clock: first.clock, epoch: 6, onChange });
  await first.clock.advance(1000);
  assert.ok(hasEnded);
  assert.equal(second.link.view.phase, 'Bound');
  assert.equal(second.link.view.active, undefined);
  assert.deepEqual([...second.link.view.sent], []);
});

test('a runner that refuses to stop a turn is asked what it has', async () => {
  const { clock, pod, link } = await bound();
  await clock.advance(10);
  const asked = pod.asked;
  link.cancel('turn-9');
  await clock.advance(10);
  assert.deepEqual([link.view.refused?.code, pod.asked], ['UnknownTurn', asked + 1]);
});

test('a runner that refuses a turn until the one before is stored is asked when it is free, and given the turn again then', async () => {
  const { clock, pod, link } = await bound();
  link.startTurn(TURN);
  await clock.advance(10);
  pod.finish('done');
  await clock.advance(10);
  const second = { ...TURN, turn: 'turn-2', index: 2 };
  link.startTurn(second);
  await clock.advance(10);
  assert.deepEqual(
    [link.view.refused?.code, link.view.active, link.view.sent.has('turn-2')],
    ['Busy', 'turn-1', false],
  );
  link.acknowledge(link.view.delivery?.result.seq ?? 0);
  assert.equal(link.view.active, undefined);
  link.startTurn(second);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1', 'turn-2']);
});
