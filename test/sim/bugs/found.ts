import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, 'found.json');

/** Seed that found a planted bug last, by the name of the bug. */
export type FoundSeeds = Readonly<Record<string, number>>;

export function readFound(): FoundSeeds {
  return JSON.parse(readFileSync(FILE, 'utf8'));
}

export function writeFound(found: FoundSeeds): void {
  const byName = Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(byName), null, 2)}\n`);
}

/** Returns a sentence for each bug without a seed, and for each seed without a bug. */
export function unmatched(names: readonly string[], found: FoundSeeds): string[] {
  const missing = names.filter((name) => found[name] === undefined);
  const stale = Object.keys(found).filter((name) => !names.includes(name));
  return [
    ...missing.map((name) => `found.json has no seed of "${name}": run make sim-seeds BUGS='${name}'`),
    ...stale.map((name) => `found.json has a seed of "${name}", which is no planted bug: run make sim-seeds`),
  ];
}
