import assert from 'node:assert/strict';
import { test } from 'vitest';
import { RunningTime } from '../../../../cli/follow/running-time.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

test('the time of a turn is shown each second, not while it is hidden, and goes on with the time since the beginning', async () => {
  const clock = new VirtualClock();
  const shown: string[] = [];
  const time = new RunningTime('a-1', { clock, status: (line) => shown.push(line) });
  const second = () => clock.advance(1000);
  time.show();
  time.show();
  assert.deepEqual(shown, []);
  await second();
  await second();
  assert.deepEqual(shown.splice(0), ['turn a-1 Running 1s', 'turn a-1 Running 2s']);
  time.hide();
  time.hide();
  assert.deepEqual(shown.splice(0), ['']);
  for (let i = 0; i < 58; i++) await second();
  assert.equal(clock.pending, 0);
  time.show();
  await second();
  assert.deepEqual(shown, ['turn a-1 Running 1m1s']);
});

test('no time is shown where stderr is no terminal', () => {
  const clock = new VirtualClock();
  new RunningTime('a-1', { clock }).show();
  assert.equal(clock.pending, 0);
});
