import { readFound } from './bugs/found.ts';
import { bugs } from './bugs/list.ts';
import { hunt, plant } from './bugs/plant.ts';
import { controllerCoverage } from './coverage.ts';
import { runSeed } from './run.ts';
import { invariantOf, runSeeds, summary } from './seeds.ts';

const percent = (part: number, whole: number) => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`;

/** Prints the simulator's pace, its coverage of the controller, and the seed that finds each planted bug. */
export async function figures(from: number, count: number, workers: number | undefined): Promise<void> {
  const startedAt = performance.now();
  const results = await runSeeds({ from, count, ...(workers ? { workers } : {}) });
  console.log('seeds', JSON.stringify(summary(results, performance.now() - startedAt)));

  const files = await controllerCoverage(async () => {
    for (let seed = from; seed < from + count; seed++) await runSeed({ seed });
  });
  const sum = (of: 'lines' | 'ran') => files.reduce((total, file) => total + file[of], 0);
  console.log(
    `coverage of controller/: ${percent(sum('ran'), sum('lines'))} of ${sum('lines')} lines in ${files.length} files`,
  );
  const least = files.toSorted((a, b) => a.ran / a.lines - b.ran / b.lines).slice(0, 10);
  for (const { file, ran, lines } of least) console.log(`  ${percent(ran, lines)} ${file}`);

  const recorded = readFound();
  for (const bug of bugs) {
    const { seed, words } = await hunt(plant(bug), bug, recorded[bug.name]);
    const found = seed === undefined ? 'not found' : `seed ${seed}, ${invariantOf(words)}`;
    console.log(`planted bug: ${bug.name}: ${found}`);
  }
}
