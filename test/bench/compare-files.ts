/** Compares two runs: `make bench-compare A=one.json B=other.json`, each a build/bench.json that was kept. */
import { readFileSync } from 'node:fs';
import { compareRuns } from './compare.ts';
import type { BenchFile } from './run.ts';

const [a, b] = process.argv.slice(2).map((file): BenchFile => JSON.parse(readFileSync(file, 'utf8')));
if (!a?.rows || !b?.rows) throw new Error('name two files that make bench has written: A=one.json B=other.json');
console.log(compareRuns(a, b));
