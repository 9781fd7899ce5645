import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { StallWatch } from '../../../../runner/turn/stall.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function watched(...given: [stallMs?: number | undefined]) {
  const stallMs = given.length ? given[0] : 1000;
  const clock = new VirtualClock();
  const seen = { active: 0, stalls: 0 };
  const watch = new StallWatch({
    clock,
    stallMs,
    lastActivity: () => seen.active,
    onStall: () => {
      seen.stalls++;
    },
  });
  return { clock, seen, watch };
}

describe('a turn that is watched for silence', () => {
  test('is stopped once it was silent for too long, and only once', async () => {
    const { clock, seen, watch } = watched();
    watch.start();
    await clock.advance(999);
    assert.equal(seen.stalls, 0);
    await clock.advance(10_000);
    assert.equal(seen.stalls, 1);
  });
  test('is not stopped while it talks, however long it takes', async () => {
    const { clock, seen, watch } = watched();
    watch.start();
    for (let i = 0; i < 100; i++) {
      await clock.advance(900);
      seen.active = clock.monotonic();
    }
    assert.equal(seen.stalls, 0);
    await clock.advance(1000);
    assert.equal(seen.stalls, 1);
  });
  test('is not silent while it waits for people, and has all its time again after that', async () => {
    const { clock, seen, watch } = watched();
    watch.start();
    await clock.advance(500);
    watch.pause();
    await clock.advance(100_000);
    watch.start();
    await clock.advance(999);
    assert.equal(seen.stalls, 0);
    await clock.advance(1);
    assert.equal(seen.stalls, 1);
  });
  test('may be silent for ever by default, and for longer than a timer can wait', async () => {
    for (const stallMs of [undefined, 2 ** 32]) {
      const { clock, seen, watch } = watched(stallMs);
      watch.start();
      await clock.advance(2 ** 31 + 5);
      assert.equal(seen.stalls, 0);
      assert.equal(clock.pending, stallMs ? 1 : 0);
    }
  });
});
