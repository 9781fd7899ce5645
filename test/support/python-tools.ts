/** The tools that check and test the Python client, in a virtual environment that is kept outside the checkout. */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { uvProgram } from '../../images/uv.ts';
import { machineIndex } from './machine-index.ts';
import { skipWithout } from './requires.ts';

const run = promisify(execFile);
const INSTALL_MS = 300_000;
export const PYTHON_CLIENT = join(import.meta.dirname, '../../clients/python');
const REQUIREMENTS = join(PYTHON_CLIENT, 'tests/requirements.txt');

/** Resolves with the path of the environment's Python. Rejects where the packages cannot be installed. */
export async function pythonTools(): Promise<string> {
  const cache = process.env.BERTH_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth');
  const digest = createHash('sha256').update(await readFile(REQUIREMENTS));
  const folder = join(cache, 'python-client', digest.digest('hex').slice(0, 12));
  const python = join(folder, 'bin/python');
  if (await isThere(python)) return python;
  const work = `${folder}.${randomUUID()}`;
  await mkdir(join(work, '..'), { recursive: true });
  try {
    await makeEnvironment(work, ['--require-hashes', '-r', REQUIREMENTS]);
    // A concurrent process may have been faster; both have the same content.
    await rename(work, folder).catch(async (error) => {
      if (!(await isThere(python))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return python;
}

/** Makes a virtual environment of this machine's Python with what the arguments of `uv pip install` name. */
export async function makeEnvironment(folder: string, install: readonly string[]): Promise<void> {
  const uv = await uvProgram();
  const index = await machineIndex();
  const options = { timeout: INSTALL_MS, cwd: '/' };
  await run(uv, ['venv', '--no-config', '--relocatable', '--python', 'python3', folder], options);
  const from = ['--no-config', '--python', join(folder, 'bin/python'), ...(index ? ['--default-index', index] : [])];
  await run(uv, ['pip', 'install', ...from, ...install], options);
}

/** Reason to skip the tests of the Python client; false where they can run. Rejects as `skipWithout` does. */
export async function noPythonTools(): Promise<string | false> {
  const missing = await missingTools();
  return skipWithout('python', missing === undefined, missing ?? '');
}

async function missingTools(): Promise<string | undefined> {
  try {
    const { stdout } = await run('python3', ['-c', 'import sys; print(sys.version_info >= (3, 11))']);
    if (stdout.trim() !== 'True') return 'python3 of this machine is older than 3.11';
    await pythonTools();
    return undefined;
  } catch (error) {
    return `the tools of the Python client cannot be installed: ${(error as Error).message}`;
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
