import { closeSync, constants, lstatSync, openSync, readlinkSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { posix } from 'node:path';
import { errorCode } from '../system/errors.ts';

/** open(2), which Node has no name for: a descriptor to look from, without a right to read. */
const O_PATH = 0o10000000;

/** A path that leads out of its root. */
export class OutsideRootError extends Error {}

/** Opens the folder of a path below a root, and calls back with a path to it that no rename leads elsewhere. Throws an OutsideRootError or the file system's error. */
function inFolder<R>(root: string, path: string, use: (folder: string) => R): R {
  const rootFd = openSync(root, O_PATH | constants.O_DIRECTORY);
  try {
    const fd = openSync(posix.join(root, posix.dirname(path)), O_PATH | constants.O_DIRECTORY);
    try {
      const [at, rootAt] = [readlinkSync(`/proc/self/fd/${fd}`), readlinkSync(`/proc/self/fd/${rootFd}`)];
      if (at !== rootAt && !at.startsWith(rootAt === '/' ? '/' : `${rootAt}/`)) throw new OutsideRootError(path);
      return use(`/proc/self/fd/${fd}`);
    } finally {
      closeSync(fd);
    }
  } finally {
    closeSync(rootFd);
  }
}

/** Renames what is beside a path to it. */
export function putThere(root: string, path: string, upload: string): void {
  inFolder(root, path, (folder) => renameSync(`${folder}/${upload}`, `${folder}/${posix.basename(path)}`));
}

/** Renames what is at a path to a name beside it. */
export function takeAway(root: string, path: string, upload: string): void {
  inFolder(root, path, (folder) => renameSync(`${folder}/${posix.basename(path)}`, `${folder}/${upload}`));
}

/** Bytes of the file that is to be put at a path. */
export function bytesBeside(root: string, path: string, upload: string): number {
  return inFolder(root, path, (folder) => lstatSync(`${folder}/${upload}`).size);
}

/** Removes what a helper that was killed has left beside a path, or on the way to it. */
export async function removeUpload(root: string, path: string, upload: string): Promise<void> {
  for (let at = path; ; at = posix.dirname(at)) {
    try {
      const left = inFolder(root, at, (folder) => {
        const link = `${folder}/${upload}`;
        lstatSync(link);
        return posix.join(readlinkSync(folder), upload);
      });
      await rm(left, { recursive: true, force: true });
      return;
    } catch (error) {
      if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error)) || !at.includes('/')) return;
    }
  }
}
