import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const CHECKOUT = join(import.meta.dirname, '..', '..');
const PACK_MS = 300_000;

/** Makes the npm package; resolves with the path of its `berth`, as it is once it is installed. */
export async function packagedBerth(): Promise<string> {
  await promisify(execFile)(process.execPath, [join(CHECKOUT, 'package/build.ts')], { timeout: PACK_MS });
  return join(CHECKOUT, 'build/package/bin/berth');
}
