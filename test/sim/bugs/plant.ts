import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { invariantOf } from '../seeds.ts';
import { type Bug, THIN } from './bug.ts';
import { edit } from './edits.ts';

export const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
/** Inside the checkout, so that the copy finds the same dependencies. */
const COPIES = join(CHECKOUT, 'build', 'sim-bugs');
/**
 * Code that Node has compiled, for all copies: loading it takes a third of the time. Node names an entry by the way from the cache to
 * the file, so each copy has a link to it at the same place.
 */
const COMPILED = '.compiled';
/** Directories that the simulator needs. */
const SOURCES = ['api', 'controller', 'core', 'local/apiserver', 'runner', 'test/sim', 'test/support', 'test/times'];

export interface Hunt {
  /** The seed that finds the bug; undefined when none does. */
  seed: number | undefined;
  /** The invariant's message, or the output when the bug was not found. */
  words: string;
}

/** Copies the sources and plants the bug; returns the copy's path. Throws when an edit does not fit the source. */
export function plant(bug: Bug): string {
  const { files, misfits } = edit(bug, (file) => readFileSync(join(CHECKOUT, file), 'utf8'));
  if (misfits.length > 0) throw new Error(misfits.join('\n'));
  const copy = join(COPIES, bug.name.replaceAll(' ', '-'));
  rmSync(copy, { recursive: true, force: true });
  for (const source of SOURCES) {
    mkdirSync(join(copy, source), { recursive: true });
    cpSync(join(CHECKOUT, source), join(copy, source), { recursive: true });
  }
  mkdirSync(join(COPIES, COMPILED), { recursive: true });
  symlinkSync(join('..', COMPILED), join(copy, COMPILED));
  for (const [file, text] of files) writeFileSync(join(copy, file), text);
  return copy;
}

/**
 * Runs seeds on the copy until one fails by an invariant that the bug has to violate: at most `within` seeds from the recorded one
 * on. A change of the draws gives the seeds other worlds, so the first `within` seeds have a turn after these.
 */
export async function hunt(copy: string, bug: Bug, recorded: number | undefined): Promise<Hunt> {
  let words = '';
  for (const { from, count } of rangesOf(recorded, bug.within)) {
    const hunted = await huntIn(copy, bug, from, count);
    if (hunted.seed !== undefined) return hunted;
    words ||= hunted.words;
  }
  return { seed: undefined, words };
}

/** Ranges of seeds in which a bug is looked for, in their order; no seed is in two of them. */
export function rangesOf(recorded: number | undefined, within: number): { from: number; count: number }[] {
  const from = recorded ?? 1;
  const ranges = [
    { from, count: within },
    { from: 1, count: Math.min(from - 1, within) },
  ];
  return ranges.filter(({ count }) => count > 0);
}

function huntIn(copy: string, { caughtBy, focus = {} }: Bug, from: number, count: number): Promise<Hunt> {
  const range = ['--from', String(from), '--seeds', String(count), '--workers', '1'];
  const aim = ['--until', caughtBy.join(','), '--focus', JSON.stringify({ ...THIN, ...focus })];
  const args = [join(copy, 'test/sim/main.ts'), ...range, ...aim];
  const env = { ...process.env, NODE_COMPILE_CACHE: join(copy, COMPILED), NODE_COMPILE_CACHE_PORTABLE: '1' };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: copy, env, maxBuffer: 2 ** 24 }, (_error, stdout, stderr) => {
      const failures = [...stdout.matchAll(/^seed (\d+) fails at [\d.]+ s: (.*)$/gm)];
      const found = failures.find(([, , words = '']) => caughtBy.includes(invariantOf(words)));
      if (found) resolve({ seed: Number(found[1]), words: found[2] ?? '' });
      else resolve({ seed: undefined, words: failures.map(([, , words]) => words).join('\n') || stderr || stdout });
    });
  });
}
