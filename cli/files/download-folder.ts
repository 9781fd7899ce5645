import { link, lstat, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isArtifactName } from '../../core/artifacts/name.ts';
import { digestOf } from '../../core/artifacts/packed.ts';
import type { Random } from '../../core/runtime.ts';
import { failed, refused } from '../errors.ts';
import { printableName } from '../print/printable.ts';

/** A file to be written: its path in the folder, and facts of its content. */
interface FileToWrite {
  name: string;
  bytes: number;
  /** sha256 of the content, hex. */
  digest: string;
  executable?: boolean | undefined;
}

export interface DownloadFolderOptions {
  /** Absolute path of the folder. */
  folder: string;
  /** True to replace files that have other content. */
  overwrite: boolean;
  random: Random;
}

/** Errors of file systems that have no hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * A folder that files are written into, and nothing outside of it: no name leads out, and no link on the way is followed. A
 * file appears under its name as a whole or not at all.
 */
export class DownloadFolder {
  readonly #folder: string;
  readonly #overwrite: boolean;
  readonly #random: Random;

  constructor({ folder, overwrite, random }: DownloadFolderOptions) {
    this.#folder = folder;
    this.#overwrite = overwrite;
    this.#random = random;
  }

  /**
   * Returns the files that are not there yet. Throws a CliError before anything is written when one of them cannot be.
   */
  async missing<T extends FileToWrite>(files: readonly T[]): Promise<T[]> {
    const missing: T[] = [];
    for (const file of files) {
      if (!isArtifactName(file.name)) {
        throw failed(
          `an artifact is named "${printableName(file.name)}", which is no path in a folder; nothing was written`,
        );
      }
      await this.#checkFolders(file.name);
      if (!(await this.#isThere(file))) missing.push(file);
    }
    return missing;
  }

  /** Writes a file; returns its path. Throws a CliError, or the signal's reason, and leaves no part of the file. */
  async write({ name, executable }: FileToWrite, content: Buffer, signal: AbortSignal): Promise<string> {
    const path = this.#pathOf(name);
    const part = join(dirname(path), `.berth-${this.#random.bytes(6).toString('hex')}.part`);
    try {
      await this.#makeFolders(name);
      await writeWhole(part, content, executable ? 0o777 : 0o666, signal);
      signal.throwIfAborted();
      await this.#put(part, path);
      return path;
    } catch (error) {
      await rm(part, { force: true }).catch(() => {});
      if (signal.aborted) throw signal.reason;
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw this.#exists(path);
      throw asFailure(path, error);
    }
  }

  #pathOf(name: string): string {
    return join(this.#folder, name);
  }

  #exists(path: string) {
    return refused(
      `${printableName(path)} exists with other content; --overwrite replaces it, -D writes to another folder`,
    );
  }

  /** Checks that the folders of the path are no links, which could lead out, and no files. */
  async #checkFolders(name: string): Promise<void> {
    const folder = await stat(this.#folder);
    // The folder itself is the caller's choice and may be a link.
    if (folder && !folder.isDirectory() && !folder.isSymbolicLink()) throw notFolder(this.#folder);
    for (const path of foldersOf(this.#folder, name)) {
      const stats = await stat(path);
      if (stats && !stats.isDirectory()) throw notFolder(path);
    }
  }

  /** Reports whether the file is there with this content. */
  async #isThere({ name, bytes, digest }: FileToWrite): Promise<boolean> {
    const path = this.#pathOf(name);
    const stats = await stat(path);
    if (!stats) return false;
    if (stats.isDirectory())
      throw refused(`${printableName(path)} is a folder; remove it, or name another one with -D`);
    const isSame =
      stats.isFile() && stats.size === bytes && digestOf(await readFile(path).catch(() => Buffer.alloc(0))) === digest;
    if (!isSame && !this.#overwrite) throw this.#exists(path);
    return isSame;
  }

  async #makeFolders(name: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    for (const path of foldersOf(this.#folder, name)) {
      await mkdir(path).catch(async (error) => {
        const stats = await stat(path);
        if (!stats) throw error;
        if (!stats.isDirectory()) throw notFolder(path);
      });
    }
  }

  /** Gives the whole file its name; without `overwrite` only while nobody else has taken the name. */
  async #put(part: string, path: string): Promise<void> {
    if (this.#overwrite) return rename(part, path);
    try {
      await link(part, path);
    } catch (error) {
      if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      if (await stat(path)) throw this.#exists(path);
      return rename(part, path);
    }
    await rm(part, { force: true });
  }
}

/** Paths of the folders that lead to a file, the outermost first. */
function foldersOf(folder: string, name: string): string[] {
  const parts = name.split('/').slice(0, -1);
  return parts.map((_, index) => join(folder, ...parts.slice(0, index + 1)));
}

async function writeWhole(path: string, content: Buffer, mode: number, signal: AbortSignal): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await handle.writeFile(content, { signal });
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function stat(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw asFailure(path, error);
  }
}

const notFolder = (path: string) =>
  refused(`${printableName(path)} is no folder; remove it, or name another folder with -D`);

const WORDS: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EACCES: 'you may not write there',
  EROFS: 'the file system is read-only',
  ENAMETOOLONG: 'the name is too long for the file system',
};

/** Returns the error of a path that cannot be written, in words; a CliError as it is. */
export function asFailure(path: string, error: unknown): Error {
  const { code, message, name } = error as NodeJS.ErrnoException;
  if (name === 'CliError') return error as Error;
  return failed(`${printableName(path)} cannot be written: ${WORDS[code ?? ''] ?? message}${code ? ` (${code})` : ''}`);
}
