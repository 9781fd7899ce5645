/**
 * uv, which builds Python environments: the static program of its wheel for musl, fetched by pip at its first use and kept
 * outside the checkout. A fetched file counts only with the digest that is pinned here.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { access, chmod, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { arch, homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const VERSION = '0.13.9';
/** Platform of the wheel for pip, and SHA-256 of the wheel, by Node's name of the architecture. */
const WHEELS: Readonly<Record<string, { platform: string; sha256: string }>> = {
  x64: {
    platform: 'musllinux_1_1_x86_64',
    sha256: '2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25',
  },
  arm64: {
    platform: 'musllinux_1_1_aarch64',
    sha256: '5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe',
  },
};
const FETCH_MS = 180_000;

/** Resolves with the path of uv. Rejects if there is no build for this machine, or if pip cannot fetch it. */
export async function uvProgram(): Promise<string> {
  const wheel = WHEELS[arch()];
  if (!wheel)
    throw new Error(`there is no uv for ${arch()}: its wheels for musl are for ${Object.keys(WHEELS).join(', ')}`);
  const cache = process.env.BERTH_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth');
  const folder = join(cache, 'uv', wheel.sha256.slice(0, 12));
  const program = join(folder, 'uv');
  if (await isThere(program)) return program;
  const work = `${folder}.${randomUUID()}`;
  await mkdir(work, { recursive: true });
  try {
    await fetchInto(work, wheel);
    // A concurrent process may have been faster; both have the same content.
    await rename(work, folder).catch(async (error) => {
      if (!(await isThere(program))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return program;
}

async function fetchInto(work: string, { platform, sha256 }: { platform: string; sha256: string }): Promise<void> {
  const wheels = join(work, 'wheels');
  const choice = ['--no-deps', '--only-binary', ':all:', '--platform', platform, '--dest', wheels, `uv==${VERSION}`];
  await run('python3', ['-m', 'pip', 'download', '--quiet', ...choice], { timeout: FETCH_MS });
  const [name] = await readdir(wheels);
  if (name === undefined) throw new Error(`pip has fetched no wheel of uv ${VERSION} for ${platform}`);
  const digest = createHash('sha256')
    .update(await readFile(join(wheels, name)))
    .digest('hex');
  if (digest !== sha256) throw new Error(`the wheel ${name} has the digest ${digest}, not ${sha256}`);
  await run('python3', ['-m', 'zipfile', '-e', join(wheels, name), wheels]);
  await rename(join(wheels, `uv-${VERSION}.data/scripts/uv`), join(work, 'uv'));
  await chmod(join(work, 'uv'), 0o755);
  await rm(wheels, { recursive: true });
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
