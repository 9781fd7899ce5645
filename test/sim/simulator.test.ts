import assert from 'node:assert/strict';
import { test } from 'vitest';
import { runSeed } from './run.ts';
import { howToReplay, runSeeds, summary } from './seeds.ts';

/** Number of seeds in every run; `make sim-long` runs more. */
const SEEDS = 300;

test('every invariant holds for every seed', async (t) => {
  const startedAt = performance.now();
  const results = await runSeeds({ from: 1, count: SEEDS });
  await t.annotate(JSON.stringify(summary(results, performance.now() - startedAt)));
  const failures = results.filter(({ failure }) => failure !== undefined).map(howToReplay);
  assert.equal(failures.length, 0, failures.join('\n'));
});

test('the same seed is the same world, step by step', async () => {
  for (const seed of [5, 19, 107]) {
    const [first, second] = [await runSeed({ seed, digest: true }), await runSeed({ seed, digest: true })];
    assert.ok(first.steps > 1000, `seed ${seed} is worth comparing: ${first.steps} steps`);
    assert.deepEqual({ ...first, cpuMs: 0 }, { ...second, cpuMs: 0 });
  }
});
