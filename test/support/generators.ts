import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { skipWithout } from './requires.ts';

const INSTALL = join(import.meta.dirname, '../generated-clients/install');

const hasVenv = () => spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0;
/** Why the generators cannot be installed; false where they can, given a network. */
export const noGenerators = skipWithout('python', hasVenv(), 'there is no python3 with venv');

/**
 * Resolves with the folder of the generators of clients, which has `node_modules` and, in `venv/bin`, Python with its programs. They
 * are installed where they are not there; `make integration` has done that. Rejects with what npm or pip say.
 */
export async function generators(): Promise<string> {
  const { stdout } = await promisify(execFile)(INSTALL);
  return stdout.trim();
}
