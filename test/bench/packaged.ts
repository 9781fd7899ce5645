import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const CHECKOUT = join(import.meta.dirname, '..', '..');
const PACK_MS = 300_000;

/** Makes the npm package; resolves with the path of its tarball. */
export async function packedTarball(): Promise<string> {
  const build = [join(CHECKOUT, 'package/build.ts')];
  const { stdout } = await promisify(execFile)(process.execPath, build, { timeout: PACK_MS });
  return stdout.split('  ')[0] ?? '';
}

/** Makes the npm package; resolves with the path of its `berth`, as it is once it is installed. */
export async function packagedBerth(): Promise<string> {
  await packedTarball();
  return join(CHECKOUT, 'build/package/bin/berth');
}
