/** Compares two runs: `make bench-compare A=one.json B=other.json`, each a build/bench.json that was kept. */
import { readFileSync } from 'node:fs';
import { compareRuns } from './compare.ts';
import type { BenchFile } from './run.ts';

function runOf(variable: string, file: string | undefined): BenchFile {
  if (!file) throw new Error(`${variable} is missing: make bench-compare A=one.json B=other.json`);
  const run = JSON.parse(readFileSync(file, 'utf8'));
  if (!Array.isArray(run.rows)) throw new Error(`${variable}=${file} is no file of make bench: it has no rows`);
  return run;
}

try {
  const [a, b] = process.argv.slice(2);
  console.log(compareRuns(runOf('A', a), runOf('B', b)));
} catch (error) {
  console.error(`bench-compare: ${(error as Error).message}`);
  process.exitCode = 1;
}
