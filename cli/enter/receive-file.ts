import { open, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileEnd, FileEntry } from '../../core/enter/hello.ts';
import type { Random } from '../../core/runtime.ts';
import { failed } from '../errors.ts';
import { asFailure } from '../files/download-folder.ts';
import { printableName } from '../print/printable.ts';

/** Returns a path beside another for what is not whole yet. */
const partOf = (path: string, random: Random): string =>
  join(dirname(path), `.berth-${random.bytes(6).toString('hex')}.part`);

/**
 * Writes the file to `path`, in place of one that is there; it appears as a whole or not at all. Resolves with what was said at its
 * end. Throws a CliError where it cannot be written, or was written to while it was read; whatever `data` throws; or the signal's reason.
 */
export async function receiveFile(
  path: string,
  { mode }: FileEntry,
  data: AsyncGenerator<Buffer, Pick<FileEnd, 'changed'>>,
  { random, signal }: { random: Random; signal: AbortSignal },
): Promise<Pick<FileEnd, 'changed'>> {
  // A link stays one, and the file that it leads to is replaced.
  const target = await realpath(path).catch(() => path);
  const part = partOf(target, random);
  try {
    const end = await write(part, Number.parseInt(mode, 8) & 0o777, data, path);
    if (end.changed === 'Rewritten') {
      throw failed(
        `${printableName(path)} was not written: the session wrote to the file while it was read; try again`,
      );
    }
    signal.throwIfAborted();
    await rename(part, target).catch((error) => {
      throw asFailure(path, error);
    });
    return end;
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    throw error;
  }
}

/** Writes the content to `part`. Errors of the file system name `path`, which the file is to have. */
async function write(
  part: string,
  mode: number,
  data: AsyncGenerator<Buffer, Pick<FileEnd, 'changed'>>,
  path: string,
): Promise<Pick<FileEnd, 'changed'>> {
  const told = async <R>(done: Promise<R>): Promise<R> => {
    try {
      return await done;
    } catch (error) {
      throw asFailure(path, error);
    }
  };
  const handle = await told(open(part, 'wx', mode));
  try {
    for (;;) {
      const { value, done } = await data.next();
      if (done) {
        await told(handle.sync());
        return value;
      }
      await told(handle.writeFile(value));
    }
  } finally {
    await handle.close();
    await data.return(undefined as never);
  }
}
