import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/**
 * Command lines that import a program and end: without a configuration the controller and the API end with an error, the runner would
 * wait for its control lines.
 */
const PROGRAMS = [
  ['controller/main.ts'],
  ['api/main.ts'],
  ['--input-type=module', '-e', `await import(${JSON.stringify(join(ROOT, 'runner/runner.ts'))})`],
];

/**
 * Global set-up of suites that start the programs: has Node compile them once into NODE_COMPILE_CACHE. Node writes there at a regular
 * end only, and tests kill what they have started.
 */
export default function compilePrograms(): void {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  if (NODE_COMPILE_CACHE === undefined) return;
  const env = { PATH, NODE_COMPILE_CACHE, HOME: '/nonexistent' };
  for (const program of PROGRAMS) {
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', ...program], { cwd: ROOT, env });
  }
}
