import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../core/system.ts';
import { keeperStart } from '../../runner/process/keeper.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');
const start = keeperStart(join(CHECKOUT, 'build/keeper'), systemClock, { required: false });

/**
 * Milliseconds of CPU that a program and its descendants take, as the kernel sums them. The keeper reads the sum and is
 * not part of it. Rejects unless the program ends with 0.
 */
export async function cpuOf(file: string, args: string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const env = Object.fromEntries(Object.entries(environment).map(([name, value = '']) => [name, value]));
  const family = await start({ file, argv0: basename(file), args, cwd: CHECKOUT, env });
  family.stdin.end();
  family.stdout.resume();
  const [told, { code }] = await Promise.all([text(family.stderr), family.exited, family.gone]);
  if (code !== 0 || !family.usage) throw new Error(`${file} ${args.join(' ')} ended with ${code}\n${told}`);
  return family.usage.cpuUs / 1000;
}
