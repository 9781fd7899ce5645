import assert from 'node:assert/strict';
import { test } from 'vitest';
import { longTimer } from '../../../../runner/system/timers.ts';
import { TimeLimit } from '../../../../runner/turn/time-limit.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const DAY = 24 * 60 * 60_000;

/** Timers as Node's own: one that is set too far ahead fires at once. */
class NodeClock extends VirtualClock {
  override setTimer(ms: number, fn: () => void): () => void {
    return super.setTimer(ms > 2 ** 31 - 1 ? 1 : ms, fn);
  }
}

test('a time limit of more than 24.8 days ends when it is over and not before', async () => {
  const clock = new NodeClock();
  let fired = 0;
  longTimer(clock, 60 * DAY, () => {
    fired += 1;
  });
  await clock.advance(60 * DAY - 1);
  assert.equal(fired, 0);
  await clock.advance(1);
  assert.deepEqual([fired, clock.pending], [1, 0]);
});

test('a time limit that is taken back after 30 days never ends', async () => {
  const clock = new NodeClock();
  const cancel = longTimer(clock, 60 * DAY, () => assert.fail('it fired'));
  await clock.advance(30 * DAY);
  cancel();
  await clock.advance(60 * DAY);
  assert.equal(clock.pending, 0);
});

test('a turn that ran for less than a millisecond ran for longer than none', async () => {
  const clock = new VirtualClock();
  const limit = new TimeLimit(clock, 60_000, 0, () => {});
  limit.start();
  await clock.advance(0.2);
  limit.pause();
  assert.equal(limit.ranMs, 1);
});
