import assert from 'node:assert/strict';
import { test } from 'vitest';
import { bound, setUp, TURN } from './support.ts';

test('a suspended runner hands over its state and refuses turns until it is resumed', async () => {
  const { clock, pod, link } = await bound();
  link.suspend({});
  assert.equal(link.view.suspended, false);
  await clock.advance(10);
  assert.ok(link.view.snapshot);
  assert.equal(link.view.suspended, true);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.equal(link.view.refused?.code, 'Suspended');
  assert.equal(link.view.sent.size, 0, 'what was refused was not begun');
  link.resume();
  assert.equal(link.view.snapshot, undefined);
  link.startTurn(TURN);
  await clock.advance(10);
  assert.deepEqual(pod.given, ['turn-1']);
});

test('a successor that suspends takes no snapshot that its predecessor asked for, and the one that it asked for also when it comes again', async () => {
  const { clock, pod, link } = await bound();
  link.suspend({});
  await clock.advance(10);
  const first = link.view.snapshot!.seq;
  link.close();
  pod.packMs = 2_000;
  const seen = new Set<number | undefined>();
  let isAsked = false;
  const { link: next } = setUp({
    ...{ clock, pod, epoch: 6 },
    onChange: ({ phase, snapshot }) => {
      seen.add(snapshot?.seq);
      if (isAsked || phase !== 'Bound') return;
      isAsked = true;
      next.suspend({});
    },
  });
  await clock.advance(1_000);
  assert.deepEqual([isAsked, next.view.suspended, next.view.snapshot], [true, true, undefined]);
  pod.unreachable = true;
  pod.drop();
  await clock.advance(2_000);
  pod.unreachable = false;
  next.podChanged({ scheduled: true, deleted: false });
  await clock.advance(1_000);
  assert.ok(next.view.snapshot && next.view.snapshot.seq > first);
  assert.ok(!seen.has(first));
  pod.packMs = 0;
  next.resume();
  next.startTurn(TURN);
  await clock.advance(5_000);
  pod.finish('seen');
  await clock.advance(10);
  assert.equal(
    next.view.delivery?.result.message.output,
    'seen',
    'nothing is held up by the snapshot that was passed over',
  );
});

test('a session that goes on after its suspension was undone is not taken for suspended', async () => {
  const { link } = await bound();
  link.suspend(undefined);
  assert.equal(link.view.suspendSent, true);
  link.resume();
  assert.equal(link.view.suspendSent, false);
  assert.equal(link.view.suspended, false);
});
