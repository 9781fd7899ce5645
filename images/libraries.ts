/** The shared libraries that a program needs, so that it runs in an image that has nothing else. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, realpath, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** An empty root with Debian's merged layout: /bin, /lib, /lib64 and /sbin lead into /usr. */
export async function makeRoot(root: string): Promise<void> {
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    await mkdir(join(root, 'usr', name), { recursive: true });
    await symlink(`usr/${name}`, join(root, name));
  }
}

/** Copies the dynamic loader and every library of `program` to where the loader looks for them below `root`. */
export async function copyLibraries(program: string, root: string): Promise<void> {
  const { stdout } = await run('ldd', [program]);
  for (const [, path] of stdout.matchAll(/(\/\S+) \(0x/g)) {
    const target = join(root, await mergedPath(path!));
    await mkdir(dirname(target), { recursive: true });
    await copyFile(await realpath(path!), target);
    await chmod(target, 0o755);
  }
}

/** Where a library lies once /lib and /lib64 are links into /usr; its name stays the one that programs ask for. */
async function mergedPath(path: string): Promise<string> {
  const folder = await realpath(dirname(path));
  return join(folder.startsWith('/usr/') ? folder : `/usr${folder}`, basename(path));
}
