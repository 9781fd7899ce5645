import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** Something that tests of a file waited for, with the sum of the waits. */
export interface Wait {
  what: string;
  ms: number;
}

/** What a test file took when it last ran to its end. */
export interface FileTimes {
  tests: number;
  /** From the start of its worker's work to its end: imports, hooks and tests. */
  wallMs: number;
  /** CPU of the worker and of the programs that it started and that have ended. */
  cpuMs: number;
  /** The longest waits. */
  waits: readonly Wait[];
  /** The slowest test. */
  slowest: { name: string; ms: number } | undefined;
}

/** Times of a suite: of its last whole run, and of each file's last run. */
export interface SuiteTimes {
  /** Seconds of the last run of the whole suite. */
  wallMs?: number;
  workers?: number;
  files: Record<string, FileTimes>;
}

/** Folder of the last reports on this machine, outside the checkout: a fresh clone has them too. */
function folder(): string {
  const { BERTH_CACHE, XDG_CACHE_HOME } = process.env;
  return join(BERTH_CACHE ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth'), 'times');
}

/** Returns the times of a suite's last runs on this machine; empty where it never ran, or where they cannot be read. */
export function lastTimes(suite: string): SuiteTimes {
  try {
    const { files, ...rest } = JSON.parse(readFileSync(join(folder(), `${suite}.json`), 'utf8'));
    return { ...rest, files: { ...files } };
  } catch {
    return { files: {} };
  }
}

/** Keeps the times of a suite. A machine without a place for them has none, and its tests run all the same. */
export function keepTimes(suite: string, times: SuiteTimes): void {
  const path = join(folder(), `${suite}.json`);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(times, undefined, 1)}\n`);
  } catch (error) {
    console.error(`the times of the suite were not kept in ${path}: ${(error as Error).message}`);
  }
}

/**
 * Returns the files with those first that took longest in the last run, so that no long file is alone at the end. Files that never
 * ran come before all, because they may be long; equal ones are in the order of their names.
 */
export function longestFirst<T>(files: readonly T[], pathOf: (file: T) => string, times: SuiteTimes): T[] {
  const wall = (file: T) => times.files[pathOf(file)]?.wallMs ?? Number.POSITIVE_INFINITY;
  return files.toSorted((a, b) => {
    const [first, second] = [wall(a), wall(b)];
    if (first !== second) return second - first;
    return pathOf(a) < pathOf(b) ? -1 : 1;
  });
}
