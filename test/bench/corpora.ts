import { globSync, rmSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { binFolder } from '../integration/shell/judge.ts';
import { generatedPairs, type Pairs, soupPairs, writtenPairs } from '../integration/shell/pairs.ts';
import type { Figure } from './figures.ts';

const TESTS = join(import.meta.dirname, '..');
/** Stands in for the test runner: runs what describes tests, and counts instead of running them. */
const COUNTING = `
const count = () => { globalThis.counted += 1; };
const describe = (...args) => args.at(-1)();
const nothing = () => {};
export { count as test, describe, nothing as after, nothing as afterAll, nothing as afterEach, nothing as before, nothing as beforeAll, nothing as beforeEach };
`;

/** Counts the texts that bash runs both as written and rewritten. */
function shell(): Figure {
  const bin = binFolder();
  try {
    const kinds: [string, Pairs][] = [
      ['written', writtenPairs(bin)],
      ['generated', generatedPairs(bin)],
      ['of random words', soupPairs(bin)],
    ];
    const sum = (of: (pairs: Pairs) => number) => kinds.reduce((total, [, pairs]) => total + of(pairs), 0);
    const compared = sum(({ pairs }) => pairs.length);
    const parts = kinds.map(([kind, { pairs }]) => `${pairs.length} ${kind}`);
    return {
      what: 'shell scripts compared: rewritten, and run by bash both ways',
      measured: `${compared}: ${parts.join(', ')}; ${sum(({ untouched }) => untouched)} more that stay as they are`,
      values: Object.fromEntries(
        kinds.map(([kind, { pairs, untouched }]) => [kind, { compared: pairs.length, untouched }]),
      ),
    };
  } finally {
    rmSync(bin, { recursive: true, force: true });
  }
}

/** Counts the tests in the files named hostile. */
async function hostile(): Promise<Figure> {
  const url = `data:text/javascript,${encodeURIComponent(COUNTING)}`;
  const hooks = registerHooks({
    resolve: (name, context, next) => (name === 'vitest' ? { url, shortCircuit: true } : next(name, context)),
  });
  const counts: Record<string, number> = {};
  try {
    for (const file of globSync('**/hostile*.test.ts', { cwd: TESTS }).sort()) {
      Object.assign(globalThis, { counted: 0 });
      await import(join(TESTS, file));
      counts[file] = (globalThis as unknown as { counted: number }).counted;
    }
  } finally {
    hooks.deregister();
  }
  const total = Object.values(counts).reduce((a, b) => a + b, 0);
  const [e2e, integration] = [true, false].map((inPods) =>
    Object.entries(counts).reduce((sum, [file, count]) => sum + (file.startsWith('e2e') === inPods ? count : 0), 0),
  );
  return {
    what: 'hostile cases',
    measured: `${total} tests in ${Object.keys(counts).length} files: ${integration} on processes, ${e2e} in pods`,
    values: counts,
  };
}

/** The sizes of what the proofs go through. */
export async function corpora(): Promise<Figure[]> {
  return [shell(), await hostile()];
}
