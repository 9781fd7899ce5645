/** Shared libraries that a program needs in an image without any other files. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, realpath, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Creates an empty root with Debian's merged layout: /bin, /lib, /lib64 and /sbin lead into /usr. */
export async function makeRoot(root: string): Promise<void> {
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    await mkdir(join(root, 'usr', name), { recursive: true });
    await symlink(`usr/${name}`, join(root, name));
  }
}

/**
 * Copies the dynamic loader and every library of `program` to the places below `root` where the loader looks for them.
 * Resolves with their names and places in it; the loader's name is `ld.so`.
 */
export async function copyLibraries(program: string, root: string): Promise<Map<string, string>> {
  const copied = new Map<string, string>();
  for (const path of await librariesOf(program)) {
    const place = await copyLibrary(path, root);
    const name = basename(place);
    copied.set(name.startsWith('ld-linux') ? 'ld.so' : name, place);
  }
  if (!copied.has('ld.so'))
    throw new Error(`${program} has no dynamic loader named ld-linux…: is this machine's libc glibc?`);
  return copied;
}

/**
 * Copies the parts of glibc that `program` itself does not need to below `root`: other programs ask for them by name,
 * and only those of the same build fit.
 */
export async function copyRestOfGlibc(program: string, root: string): Promise<void> {
  const libc = (await librariesOf(program)).find((path) => basename(path) === 'libc.so.6');
  if (libc === undefined)
    throw new Error(`${program} is not linked against glibc: the runner image takes it from there`);
  for (const name of ['libresolv.so.2', 'librt.so.1', 'libutil.so.1'])
    await copyLibrary(join(dirname(libc), name), root);
}

async function librariesOf(program: string): Promise<string[]> {
  const { stdout } = await run('ldd', [program]);
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
}

/** Resolves with the library's place below `root`. */
async function copyLibrary(path: string, root: string): Promise<string> {
  const place = await mergedPath(path);
  const target = join(root, place);
  await mkdir(dirname(target), { recursive: true });
  await copyFile(await realpath(path), target);
  await chmod(target, 0o755);
  return place;
}

/**
 * Returns the place of a library once /lib and /lib64 are links into /usr; its name stays the one that programs ask
 * for.
 */
async function mergedPath(path: string): Promise<string> {
  const folder = await realpath(dirname(path));
  return join(folder.startsWith('/usr/') ? folder : `/usr${folder}`, basename(path));
}
