import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const INSTALL = join(import.meta.dirname, '../generated-clients/install');

/**
 * Resolves with the folder of the generators of clients, which has `node_modules` and, in `venv/bin`, Python with its programs. They
 * are installed where they are not there; `make integration` has done that. Rejects with what npm or pip say.
 */
export async function generators(): Promise<string> {
  const { stdout } = await promisify(execFile)(INSTALL);
  return stdout.trim();
}
