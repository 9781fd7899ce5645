import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { invariantOf } from '../seeds.ts';
import type { Bug } from './bug.ts';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
/** Inside the checkout, so that the copy finds the same dependencies. */
const COPIES = join(CHECKOUT, 'build', 'sim-bugs');
/** Directories that the simulator needs. */
const SOURCES = ['controller', 'core', 'local/apiserver', 'runner', 'test/sim', 'test/support'];

export interface Hunt {
  /** Seeds until the bug was found; undefined when it was not. */
  seeds: number | undefined;
  /** The invariant's message, or the output when the bug was not found. */
  words: string;
}

/** Copies the sources and plants the bug; returns the copy's path. Throws when an edit does not fit the source. */
export function plant(bug: Bug): string {
  const copy = join(COPIES, bug.name.replaceAll(' ', '-'));
  rmSync(copy, { recursive: true, force: true });
  for (const source of SOURCES) {
    mkdirSync(join(copy, source), { recursive: true });
    cpSync(join(CHECKOUT, source), join(copy, source), { recursive: true });
  }
  for (const { file, find, replace } of bug.edits) {
    const path = join(copy, file);
    const text = readFileSync(path, 'utf8');
    const times = text.split(find).length - 1;
    if (times !== 1) throw new Error(`"${bug.name}": what is to be replaced occurs ${times} times in ${file}: ${find}`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return copy;
}

/** Runs seeds on the copy until one fails by an invariant that the bug has to violate. */
export function hunt(copy: string, { within, from = 1, caughtBy, focus = {} }: Bug): Promise<Hunt> {
  const range = ['--from', String(from), '--seeds', String(within), '--workers', '1'];
  // Pools change what a seed draws: bugs of everything else are found in worlds without them.
  const aim = ['--until', caughtBy.join(','), '--focus', JSON.stringify({ pools: false, ...focus })];
  const args = [join(copy, 'test/sim/main.ts'), ...range, ...aim];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: copy, maxBuffer: 2 ** 24 }, (_error, stdout, stderr) => {
      const failures = [...stdout.matchAll(/^seed (\d+) fails at [\d.]+ s: (.*)$/gm)];
      const found = failures.find(([, , words = '']) => caughtBy.includes(invariantOf(words)));
      if (found) resolve({ seeds: Number(found[1]) - from + 1, words: found[2] ?? '' });
      else resolve({ seeds: undefined, words: failures.map(([, , words]) => words).join('\n') || stderr || stdout });
    });
  });
}
