import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bugs } from './list.ts';
import { hunt, plant } from './plant.ts';

describe('the simulator finds classic mistakes', { concurrency: 2 }, () => {
  for (const bug of bugs) {
    test(bug.name, async (t) => {
      const { seeds, words } = await hunt(plant(bug), bug);
      assert.ok(seeds !== undefined, `not found within ${bug.within} seeds: ${words}`);
      t.diagnostic(`found by the ${seeds}. seed: ${words}`);
    });
  }
});
