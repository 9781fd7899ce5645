/** Builds the wheel of the Python client from a copy of its folder, so that the checkout stays as it is. */
import { execFile } from 'node:child_process';
import { copyFile, cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { uvProgram } from '../images/uv.ts';

const run = promisify(execFile);
const BUILD_MS = 180_000;
const PARTS = ['src', 'berth_agent.py', 'README.md', 'pyproject.toml'];

/**
 * Writes berth_client-VERSION-py3-none-any.whl into `out` and resolves with its path. What builds it comes from the package index with the
 * digests of build-requirements.txt; `index`: in place of PyPI.
 */
export async function buildWheel(checkout: string, out: string, index?: string): Promise<string> {
  const source = join(checkout, 'clients/python');
  const work = await mkdtemp(join(tmpdir(), 'berth-wheel-'));
  try {
    const filter = (path: string) => !path.endsWith('__pycache__');
    for (const part of PARTS) await cp(join(source, part), join(work, part), { recursive: true, filter });
    await copyFile(join(checkout, 'LICENSE'), join(work, 'LICENSE'));
    const pinned = ['--build-constraints', join(source, 'build-requirements.txt'), '--require-hashes'];
    const from = index === undefined ? [] : ['--default-index', index];
    const args = ['build', '--wheel', '--no-config', '--out-dir', out, ...pinned, ...from, work];
    const { stderr } = await run(await uvProgram(), args, { timeout: BUILD_MS });
    const name = /berth_client-\S+-py3-none-any\.whl/.exec(stderr)?.[0];
    if (name === undefined) throw new Error(`uv has built no wheel of the Python client: ${stderr}`);
    return join(out, name.split('/').at(-1) as string);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
