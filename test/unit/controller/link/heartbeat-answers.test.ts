import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Heartbeat } from '../../../../controller/link/heartbeat.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

test('a ping for figures that is lost is sent again in its time, whatever frames come meanwhile', async () => {
  const clock = new VirtualClock();
  const sentAt: number[] = [];
  const heartbeat = new Heartbeat({
    clock,
    answers: { at: Number.NEGATIVE_INFINITY },
    attachment: {
      silentSince: undefined,
      failingMs: 0,
      failingSince: undefined,
      expectAnswer: () => {},
      answered: () => {},
      rest: () => {},
    },
    sendPing: () => sentAt.push(clock.monotonic()),
    restAt: () => Number.POSITIVE_INFINITY,
    onHeard: () => {},
    onSilence: () => {},
  });
  const startedAt = clock.monotonic();
  heartbeat.heard();
  heartbeat.turnStarted();
  for (let second = 0; second < 45; second++) {
    await clock.advance(1_000);
    heartbeat.heard();
  }
  heartbeat.close();
  assert.deepEqual(
    sentAt.map((at) => at - startedAt),
    [10_000, 40_000],
  );
});
