/**
 * Mutation testing: a seeded sample of small edits over `controller/` and `core/frames`, each run against the unit tests that
 * import the edited file. A mutant that no test notices has survived: a rule without a test, or an edit that changes nothing.
 *
 *     make mutation COUNT=300 SEED=1     prints each survivor and, last, a line of JSON with the counts; SIGINT ends it early
 *     make mutation SEEDS=40             has the simulator judge what the unit tests let pass, with so many seeds
 *     make mutation ONLY=controller/capacity
 */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRandom } from '../support/random.ts';
import { Imports } from './affected.ts';
import { lineOf, type Mutant, mutantsOf } from './mutants.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Longest run of the tests of one mutant; a mutant that makes them run longer is killed by it. */
const LIMIT_MS = 120_000;
/** Test files that are run first, in order of their distance from the edited file. */
const NEAR = 8;

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    seeds: { type: 'string', default: '0' },
    workers: { type: 'string', default: '2' },
  },
});

const sources = globSync(['controller/**/*.ts', 'core/frames/*.ts'], { cwd: ROOT }).filter((file) =>
  file.startsWith(values.only),
);
const tests = globSync('test/unit/**/*.test.ts', { cwd: ROOT });
const imports = new Imports(ROOT, tests);

type Verdict = { killedBy: string } | 'simulated' | 'survived' | 'untested';

const all = sources.sort().flatMap((file) => mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')));
const sample = shuffled(all, Number(values.seed)).slice(0, Number(values.count));
const counts = { mutants: all.length, sampled: sample.length, killed: 0, simulated: 0, survived: 0, untested: 0 };

const green = await failureOf(undefined, unitTests(tests.filter((test) => /unit\/(controller|frames)\//.test(test))));
if (green !== undefined) throw new Error(`the tests fail without a mutant: ${green}`);

let isEnding = false;
process.once('SIGINT', () => {
  isEnding = true;
});
const left = sample.values();
const worker = async () => {
  for (const mutant of left) {
    if (isEnding) break;
    const verdict = await verdictOf(mutant);
    counts[typeof verdict === 'object' ? 'killed' : verdict]++;
    if (verdict === 'survived' || verdict === 'untested') console.log(`${verdict} ${describe(mutant)}`);
  }
};
await Promise.all(Array.from({ length: Number(values.workers) }, worker));
console.log(JSON.stringify(counts));

async function verdictOf(mutant: Mutant): Promise<Verdict> {
  const files = imports.testsOf(mutant.file);
  // Most mutants die in the tests next to them, which takes a tenth of the time.
  for (const some of [files.slice(0, NEAR), files.slice(NEAR)]) {
    const killedBy = some.length > 0 ? await failureOf(mutant, unitTests(some)) : undefined;
    if (killedBy !== undefined) return { killedBy };
  }
  const simulator = ['test/sim/main.ts', '--seeds', values.seeds, '--workers', '1'];
  if (Number(values.seeds) > 0 && (await failureOf(mutant, simulator)) !== undefined) return 'simulated';
  return files.length > 0 ? 'survived' : 'untested';
}

function unitTests(files: readonly string[]): string[] {
  return [
    ...['node_modules/vitest/vitest.mjs', 'run', '--configLoader', 'native'],
    ...['--config', 'test/mutation/vitest.config.ts', ...files],
  ];
}

/** Resolves with the first failure that the tests report, or with how they ended otherwise; undefined: they passed. */
function failureOf(mutant: Mutant | undefined, command: readonly string[]): Promise<string | undefined> {
  const child = spawn(process.execPath, ['--import', './test/mutation/plant.ts', ...command], {
    cwd: ROOT,
    // A process group, for what the tests run in to end with them.
    detached: true,
    env: { ...process.env, BERTH_MUTANT: JSON.stringify(mutant ?? null) },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return new Promise((resolve, reject) => {
    let killedBy: string | undefined;
    const kill = (reason: string) => {
      killedBy ??= reason;
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    };
    const timer = setTimeout(() => kill('the time limit'), LIMIT_MS);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const failed = /^(?:FAILED |(?=seed \d+ fails))(.*)$/m.exec(output);
      if (failed) kill(failed[1]!);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve(killedBy ?? (code === 0 ? undefined : `exit code ${code}`));
    });
  });
}

function describe({ file, offset, find, replace }: Mutant): string {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const line = lineOf(source, offset);
  return `${file}:${line}  ${find.trim()} → ${replace.trim() || 'nothing'}  in: ${source.split('\n')[line - 1]!.trim()}`;
}

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const { uniform } = seededRandom(seed);
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(uniform() * (i + 1));
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}
