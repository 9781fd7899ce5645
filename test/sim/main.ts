/**
 * Runs seeds of the simulator: one with its trace (`--seed 123 [--trace]`), or many (`--seeds 1000 [--from 1]`). With
 * `--figures` it prints what many seeds cost, cover and find; with `--digests`, the digest of each seed's trace.
 * README.md describes the simulator.
 */
import { parseArgs } from 'node:util';
import type { Focus } from './focus.ts';
import { howToReplay, type Result, runSeeds, summary } from './seeds.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    workers: { type: 'string' },
    until: { type: 'string' },
    focus: { type: 'string' },
    figures: { type: 'boolean', default: false },
    digests: { type: 'boolean', default: false },
  },
});

const workers = values.workers ? Number(values.workers) : undefined;
const focus = values.focus === undefined ? undefined : (JSON.parse(values.focus) as Focus);

// Many seeds run in workers, and only these load the simulator: loading it takes longer than a seed.
if (values.figures) {
  const { figures } = await import('./figures.ts');
  await figures(Number(values.from), Number(values.seeds), workers);
} else if (values.digests) {
  const options = {
    from: Number(values.from),
    count: Number(values.seeds),
    digest: true,
    ...(workers ? { workers } : {}),
  };
  for (const { seed, digest } of await runSeeds(options)) console.log(`${seed} ${digest}`);
} else if (values.seed !== undefined) {
  const { runSeed } = await import('./run.ts');
  const print = (line: string) => console.log(line);
  const result = await runSeed({
    seed: Number(values.seed),
    digest: true,
    ...(focus ? { focus } : {}),
    ...(values.trace ? { print } : {}),
  });
  console.log(result.failure ? howToReplay(result) : `seed ${result.seed} holds`);
  console.log(JSON.stringify({ ...result, failure: undefined }));
  process.exitCode = result.failure ? 1 : 0;
} else {
  const startedAt = performance.now();
  const results: Result[] = [];
  const conclude = () => {
    console.log(JSON.stringify(summary(results, performance.now() - startedAt)));
    process.exit(results.some(({ failure }) => failure !== undefined) ? 1 : 0);
  };
  // An interrupted run still prints its summary.
  process.once('SIGINT', conclude);
  process.once('SIGTERM', conclude);
  await runSeeds({
    from: Number(values.from),
    count: Number(values.seeds),
    ...(values.until ? { until: values.until.split(',') } : {}),
    ...(focus ? { focus } : {}),
    ...(workers ? { workers } : {}),
    onResult: (result) => {
      results.push(result);
      if (result.failure) console.log(howToReplay(result));
    },
  });
  conclude();
}
