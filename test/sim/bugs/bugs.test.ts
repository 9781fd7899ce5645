import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { changeIn } from './change.ts';
import { choose } from './choose.ts';
import { readFound } from './found.ts';
import { bugs } from './list.ts';
import { CHECKOUT, hunt, plant } from './plant.ts';

const { bugs: chosen, reason } = choose(bugs, process.env.BUGS, await changeIn(CHECKOUT));
const found = readFound();
console.log(`planted bugs: ${reason}`);

describe('the simulator finds classic mistakes', { concurrent: true }, () => {
  for (const bug of chosen) {
    test(bug.name, async (t) => {
      const recorded = found[bug.name];
      const { seed, words } = await hunt(plant(bug), bug, recorded);
      assert.ok(seed !== undefined, `not found within ${bug.within} seeds: ${words}`);
      const moved = seed === recorded ? '' : `, recorded ${recorded ?? 'none'}: run make sim-seeds`;
      await t.annotate(`found by seed ${seed}${moved}: ${words}`);
    });
  }
});
