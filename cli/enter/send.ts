import { lstat, open, readdir, readlink, stat } from 'node:fs/promises';
import { basename, join, posix, resolve } from 'node:path';
import { EnterError } from '../../core/enter/client.ts';
import { DATA_BYTES } from '../../core/enter/frames.ts';
import type { FileEnd, Kept } from '../../core/enter/hello.ts';
import type { FolderEntry } from '../../core/enter/uploads.ts';
import { staysInside } from '../../core/links.ts';
import type { Cli } from '../cli.ts';
import type { Inside, Place } from '../cluster/inside.ts';
import { failed, refused } from '../errors.ts';
import { asFailure } from '../files/download-folder.ts';
import { filesText } from '../print/print.ts';
import { printableName } from '../print/printable.ts';
import { begunAnew } from './mended.ts';
import type { Entered } from './open.ts';
import { shown } from './place.ts';
import { Progress } from './progress.ts';

/** Bytes that are read at once: those of four frames. */
const READ_BYTES = 4 * DATA_BYTES;

/** A file or a folder of this machine. */
export interface Source {
  /** Absolute path. */
  path: string;
  isFolder: boolean;
  /** True for FOLDER/. */
  asksForContent: boolean;
  bytes: number;
  mode: number;
  /** ms since 1970. */
  modified: number;
}

/** Looks at what is to be sent before anything is asked of the session. Throws a CliError. */
export async function sourceOf(from: string, cli: Cli): Promise<Source> {
  const path = resolve(cli.cwd, from);
  const found = await stat(path).catch((error) => {
    throw asFailure(path, error);
  });
  const isFolder = found.isDirectory();
  if (!isFolder && !found.isFile()) {
    throw refused(`${printableName(path)} is neither a file nor a folder; use exec -i and a redirection`);
  }
  const asksForContent = isFolder && (from === '.' || from.endsWith('/.'));
  return { path, isFolder, asksForContent, bytes: found.size, mode: found.mode & 0o777, modified: found.mtimeMs };
}

/** Sends a file or a folder to its place in the session, or into the folder that is there. Throws a CliError, or rejects as the session does. */
export async function send(entered: Entered, source: Source, to: Place, cli: Cli): Promise<number> {
  const names = to.path.split('/').filter((name) => name !== '' && name !== '.');
  const given = { root: to.root, path: names.join('/') };
  const asFolder =
    names.length === 0 ||
    to.path.endsWith('/') ||
    (await begunAnew(entered, cli, () => isFolderThere(entered.inside, given)));
  const path = asFolder && !source.asksForContent ? posix.join(given.path, basename(source.path)) : given.path;
  const target = { root: to.root, path };
  const end = source.isFolder
    ? await sendFolder(entered, source, target, cli)
    : await sendFile(entered, source, target, cli);
  await cli.out(`${printableName(shown(target))}\n`);
  const word = keptWord(end.kept, to.root);
  if (word) cli.say(word);
  return 0;
}

async function isFolderThere(inside: Inside, place: Place): Promise<boolean> {
  try {
    return (await inside.stat(place)).type === 'folder';
  } catch (error) {
    if (error instanceof EnterError && error.code === 'FileNotFound') return false;
    throw error;
  }
}

async function sendFile(entered: Entered, source: Source, target: Place, cli: Cli): Promise<FileEnd> {
  const { bytes, mode, modified } = source;
  const facts = { length: bytes, mode, modified: Math.floor(modified) };
  return begunAnew(entered, cli, async (begun) => {
    const progress = new Progress({ what: shown(target), total: bytes }, cli);
    try {
      return await entered.inside.write(target, facts, noting(begun, contentOf(source.path, bytes, progress)));
    } finally {
      progress.end();
    }
  });
}

async function sendFolder(entered: Entered, source: Source, target: Place, cli: Cli): Promise<FileEnd> {
  const found: FolderEntry[] = [];
  await collect(source.path, '', found, (name, why) => cli.say(`left out ${printableName(name)}: ${why}`));
  const length = found.reduce((sum, { length = 0 }) => sum + length, 0);
  const end = await begunAnew(entered, cli, async (begun) => {
    const progress = new Progress({ what: shown(target), total: length }, cli);
    const entries = async function* () {
      // A folder that is empty is made all the same.
      for (const entry of found) {
        cli.interrupted.throwIfAborted();
        const content = contentOf(join(source.path, entry.path), entry.length ?? 0, progress);
        yield entry.type === 'file' ? { ...entry, content } : entry;
      }
    };
    try {
      return await entered.inside.fill(target, length, noting(begun, entries()));
    } finally {
      progress.end();
    }
  });
  const files = found.filter(({ type }) => type === 'file').length;
  cli.say(`${filesText(files)} written`);
  return end;
}

/** Yields what there is; calls `begun` when the first of it is asked for. */
async function* noting<T>(begun: () => void, all: AsyncIterable<T>): AsyncGenerator<T> {
  begun();
  yield* all;
}

/** Adds what is below a folder, each folder before what is in it. */
async function collect(
  folder: string,
  prefix: string,
  found: FolderEntry[],
  leaveOut: (name: string, why: string) => void,
): Promise<void> {
  for (const name of (await readdir(folder).catch(told(folder))).sort()) {
    const at = join(folder, name);
    const stats = await lstat(at).catch(told(at));
    const path = prefix + name;
    const facts = { path, mode: stats.mode & 0o777, modified: stats.mtimeMs };
    if (stats.isDirectory()) {
      found.push({ ...facts, type: 'folder' });
      await collect(at, `${path}/`, found, leaveOut);
    } else if (stats.isFile()) found.push({ ...facts, type: 'file', length: stats.size });
    else if (stats.isSymbolicLink()) {
      const target = await readlink(at).catch(told(at));
      if (staysInside(path, target)) found.push({ ...facts, type: 'link', target });
      else leaveOut(path, 'a link that leads out of the folder');
    } else leaveOut(path, 'neither a file nor a folder nor a link');
  }
}

const told =
  (path: string) =>
  (error: unknown): never => {
    throw asFailure(path, error);
  };

/** Yields exactly these bytes of a file: what is added meanwhile is not sent. Throws a CliError. */
async function* contentOf(path: string, bytes: number, progress: Progress): AsyncGenerator<Buffer> {
  const handle = await open(path).catch(told(path));
  try {
    for (let at = 0; at < bytes; ) {
      const room = Buffer.allocUnsafe(Math.min(READ_BYTES, bytes - at));
      const { bytesRead } = await handle.read(room, 0, room.length, at).catch(told(path));
      if (bytesRead === 0) {
        throw failed(`${printableName(path)} shrank while it was read; it was not sent`);
      }
      at += bytesRead;
      progress.add(bytesRead);
      yield room.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** Returns a sentence on when a write or deletion becomes durable, or that it does not. Undefined for one on the session's volume. */
export function keptWord(kept: Kept | undefined, root: string): string | undefined {
  if (kept === 'State') return 'this becomes durable with the end of the next turn, or with the suspension';
  if (kept === 'Pod') return `${root} of this session is not kept: this is lost when its pod ends`;
  return undefined;
}
