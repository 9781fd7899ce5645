import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readFound } from './found.ts';
import { bugs } from './list.ts';
import { named } from './named.ts';
import { hunt, plant } from './plant.ts';

const found = readFound();

describe('the simulator finds classic mistakes', { concurrent: true }, () => {
  for (const bug of named(bugs, process.env.BUGS)) {
    test(bug.name, async (t) => {
      const recorded = found[bug.name];
      const { seed, words } = await hunt(plant(bug), bug, recorded);
      assert.ok(seed !== undefined, `not found within ${bug.within} seeds: ${words}`);
      const moved = seed === recorded ? '' : `, recorded ${recorded ?? 'none'}: run make sim-seeds`;
      await t.annotate(`found by seed ${seed}${moved}: ${words}`);
    });
  }
});
