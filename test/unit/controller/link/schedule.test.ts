import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AttachSchedule } from '../../../../controller/link/schedule.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** Times of the attempts within `ms`, milliseconds after the start. `at` runs at the times that are its keys. */
async function attempts(ms: number, at: Record<number, (schedule: AttachSchedule) => void> = {}, hurried = true) {
  const clock = new VirtualClock();
  const schedule = new AttachSchedule(clock, { hurried });
  const ended = new AbortController();
  const begun = clock.monotonic();
  const times: number[] = [];
  const attach = async () => {
    for (;;) {
      await schedule.wait(ended.signal);
      if (ended.signal.aborted) return;
      times.push(clock.monotonic() - begun);
    }
  };
  const over = attach();
  for (let passed = 0; passed < ms; passed++) {
    at[passed]?.(schedule);
    await clock.advance(1);
  }
  ended.abort();
  await over;
  return times;
}

describe('attempts to attach', () => {
  test('to a pod that has no node yet are made every two seconds, as the cache may be late', async () => {
    assert.deepEqual(await attempts(5_000), [2_000, 4_000]);
  });

  test('begin 120 ms after the pod was scheduled, and follow each other every 25 ms', async () => {
    const times = await attempts(1_300, { 1000: (schedule) => schedule.scheduled() });
    assert.deepEqual(times.slice(0, 3), [1_120, 1_145, 1_170]);
  });

  test('to a pod that nobody waits for follow each other every 200 ms', async () => {
    const times = await attempts(1_000, { 0: (schedule) => schedule.scheduled() }, false);
    assert.deepEqual(times.slice(0, 3), [120, 320, 520]);
  });

  test('follow each other every 25 ms from the moment at which somebody waits for the pod', async () => {
    const times = await attempts(1_000, { 0: (s) => s.scheduled(), 400: (s) => s.hurry() }, false);
    assert.deepEqual(times.slice(0, 5), [120, 320, 400, 425, 450]);
  });

  test('are made after 2, 4, 8 and then every 15 s when the fast ones are over, and when the pod changes', async () => {
    const times = await attempts(40_000, {
      0: (schedule) => schedule.scheduled(),
      20000: (schedule) => schedule.changed(),
    });
    const slow = times.filter((time) => time > 1_200).map((time) => Math.round(time / 1_000));
    assert.deepEqual(slow, [3, 7, 15, 20, 35]);
  });
});
