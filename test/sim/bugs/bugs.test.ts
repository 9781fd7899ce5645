import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { bugs } from './list.ts';
import { hunt, plant } from './plant.ts';

describe('the simulator finds classic mistakes', { concurrent: true }, () => {
  for (const bug of bugs) {
    test(bug.name, async (t) => {
      const { seeds, words } = await hunt(plant(bug), bug);
      assert.ok(seeds !== undefined, `not found within ${bug.within} seeds: ${words}`);
      await t.annotate(`found by the ${seeds}. seed: ${words}`);
    });
  }
});
