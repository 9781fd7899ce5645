import assert from 'node:assert/strict';
import { test } from 'vitest';
import { systemClock } from '../../../core/system.ts';

test('a timer whose time is past fires at once, and Node has nothing to warn of', async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  await new Promise<void>((resolve) => {
    const wait = setTimeout(() => assert.fail('it did not fire'), 60_000);
    systemClock.setTimer(-0.0001, () => {
      clearTimeout(wait);
      resolve();
    });
  });
  // A warning comes with the next tick.
  await new Promise(setImmediate);
  process.off('warning', warned);
  assert.deepEqual(warnings, []);
});
