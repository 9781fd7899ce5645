import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { uvProgram } from '../../images/uv.ts';

const run = promisify(execFile);
const FETCH_MS = 30_000;

/** URL of the package index that this machine is configured to use; undefined: the tools' own. */
export async function machineIndex(): Promise<string | undefined> {
  if (process.env.UV_DEFAULT_INDEX) return process.env.UV_DEFAULT_INDEX;
  const { stdout } = await run('python3', ['-m', 'pip', 'config', 'list']);
  return /^(?:global|:env:)\.index-url='(.*)'$/m.exec(stdout)?.[1];
}

/** Reason to skip a test: this machine's index does not have the packages of these requirements; false if it has. */
export async function unreachable(requirements: string): Promise<string | false> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-wheels-'));
  const args = ['pip', 'compile', '--quiet', '--no-cache', '--no-config', '--only-binary', ':all:'];
  try {
    const index = await machineIndex();
    const file = join(folder, 'requirements.txt');
    writeFileSync(file, requirements);
    await run(await uvProgram(), [...args, ...(index ? ['--default-index', index] : []), file], {
      cwd: folder,
      timeout: FETCH_MS,
    });
    return false;
  } catch {
    return 'this machine reaches no package index with the packages that are asked for';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
