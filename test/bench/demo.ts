import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finish } from '../e2e/support/cluster.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';
import { took } from './took.ts';

const SAMPLES = count(5, 1);
const CHECKOUT = join(import.meta.dirname, '..', '..');

/** `make demo` on a clone of the commit, with npm's cache as this machine has it. */
export async function demo(): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const values: number[] = [];
  const run = async (file: string, args: string[], cwd: string) => {
    const { code, stderr } = await finish(file, args, { cwd });
    if (code !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr.slice(-500)}`);
  };
  try {
    for (let i = 0; i < SAMPLES; i++) {
      const clone = join(folder, `${i}`);
      await run('git', ['clone', '--quiet', CHECKOUT, clone], folder);
      values.push((await took(() => run('make', ['demo'], clone))) / 1000);
      rmSync(clone, { recursive: true, force: true });
    }
    return { rows: [{ id: 'demo', values, note: 'npm ci included' }] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
