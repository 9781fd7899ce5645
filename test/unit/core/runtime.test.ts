import assert from 'node:assert/strict';
import { test } from 'vitest';
import { msUntil } from '../../../core/runtime.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('what is to be done at a time comes no later for a clock that was set back since that was decided', async () => {
  const clock = new VirtualClock();
  const then = clock.now();
  await clock.advance(200);
  assert.equal(msUntil(clock, then + 1_000, then), 800);
  clock.jump(-3_600_000);
  assert.equal(msUntil(clock, then + 1_000, then), 1_000);
});
