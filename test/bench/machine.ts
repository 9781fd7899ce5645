/** Speed of the machine, by work that no program of ours takes part in. */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Speed } from './table.ts';

const LOOPS = 5;
const STEPS = 40_000_000;
const SYNCS = 20;
const BLOCK = Buffer.alloc(4096, 'x');

/** Milliseconds of a loop of integer arithmetic on one CPU, always the same steps. */
function loopMs(): number {
  const started = performance.now();
  let word = 1;
  // A linear congruential generator: no step can be left out, because the last one is used.
  for (let i = 0; i < STEPS; i++) word = (Math.imul(word, 1_664_525) + 1_013_904_223) | 0;
  if (word === 0) throw new Error('the loop ended with 0');
  return performance.now() - started;
}

/** Measures the fixed loop and the disk, within a second on an idle machine. */
export function speed(section: string): Speed {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const file = openSync(join(folder, 'synced'), 'w');
  try {
    // The first loop is the compiler's.
    loopMs();
    const cpu = Array.from({ length: LOOPS }, loopMs);
    const fsync = Array.from({ length: SYNCS }, () => {
      const started = performance.now();
      writeSync(file, BLOCK);
      fsyncSync(file);
      return performance.now() - started;
    });
    return { section, cpu, fsync };
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true, force: true });
  }
}
