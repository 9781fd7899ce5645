import { chmod, lstat, mkdir, mkdtemp, open, readdir, rename, rm, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Header } from 'tar-stream';
import type { FileEnd } from '../../core/enter/hello.ts';
import { staysInside } from '../../core/links.ts';
import { failed, refused } from '../errors.ts';
import { asFailure } from '../files/download-folder.ts';
import { printableName } from '../print/printable.ts';

const SLASH = Buffer.from('/');

/** An archive that was unpacked. */
export interface ReceivedFolder {
  end: FileEnd;
  files: number;
  /** Paths of links that lead out of the folder, which were left out. */
  leftOut: string[];
}

/**
 * Unpacks an archive as the folder `path`, or into it where it is there already. Everything is unpacked beside it first, so that
 * nothing appears before the whole archive has come. Nothing is written elsewhere: no name leads out of the folder, and links are made last.
 * Throws a CliError, or whatever `data` throws, and leaves nothing half-done.
 */
export async function receiveFolder(path: string, data: AsyncGenerator<Buffer, FileEnd>): Promise<ReceivedFolder> {
  let part: string;
  try {
    part = await mkdtemp(`${dirname(path)}/.berth-part-`);
  } catch (error) {
    throw asFailure(path, error);
  }
  try {
    const received = await unpack(part, path, data);
    await put(Buffer.from(part), Buffer.from(path)).catch((error) => {
      throw asFailure(path, error);
    });
    return received;
  } finally {
    await rm(part, { recursive: true, force: true }).catch(() => {});
  }
}

/** Unpacks into `part`; errors name `path`. */
async function unpack(part: string, path: string, data: AsyncGenerator<Buffer, FileEnd>): Promise<ReceivedFolder> {
  const tar = await import('tar-stream');
  // Names are bytes; those of pax records are UTF-8.
  const extract = tar.extract({ filenameEncoding: 'latin1' } as object);
  const folder = Buffer.from(part);
  const links: { name: Buffer; target: Buffer }[] = [];
  const folders: { name: Buffer; mode: number }[] = [];
  const leftOut: string[] = [];
  let files = 0;
  let end: FileEnd | undefined;
  const source = async function* () {
    end = yield* data;
  };
  /** The first error; those that follow from it say less. */
  let failure: { error: unknown } | undefined;
  const note = (error: unknown): never => {
    failure ??= { error };
    throw error;
  };
  const take = async (header: Header, content: AsyncIterable<Buffer>) => {
    const name = nameOf(header, 'name');
    const at = within(folder, name);
    const mode = (header.mode ?? 0o644) & 0o777;
    if (header.type === 'directory') {
      await mkdir(at, { recursive: true, mode: 0o700 });
      folders.push({ name: at, mode });
    } else if (header.type === 'symlink') links.push({ name, target: nameOf(header, 'linkname') });
    else if (header.type === 'file') {
      await writeFile(at, mode, content, note);
      files += 1;
    } else throw failed(`the archive holds a ${header.type}, which is never unpacked: ${printableName(String(name))}`);
  };
  const written = async () => {
    for await (const entry of extract) {
      await take(entry.header, entry as AsyncIterable<Buffer>).catch(note);
      entry.resume();
    }
  };
  try {
    await Promise.allSettled([pipeline(Readable.from(source()), extract).catch(note), written().catch(note)]);
    if (failure) throw failure.error;
    for (const { name, target } of links) {
      if (staysInside(name.toString('utf8'), target.toString('utf8'))) await symlink(target, within(folder, name));
      else leftOut.push(name.toString('utf8'));
    }
    // The deepest first: a folder may forbid its owner to write.
    for (const { name, mode } of folders.reverse()) await chmod(name, mode & ~process.umask());
    await chmod(folder, 0o777 & ~process.umask());
  } catch (error) {
    throw 'errno' in (error as object) ? asFailure(path, error) : error;
  }
  return { end: end as FileEnd, files, leftOut };
}

/** `note` gets an error of the write first: leaving the loop then breaks the archive off, which is an error of its own. */
async function writeFile(
  path: Buffer,
  mode: number,
  content: AsyncIterable<Buffer>,
  note: (error: unknown) => never,
): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    for await (const chunk of content) await handle.writeFile(chunk).catch(note);
  } finally {
    await handle.close();
  }
}

function nameOf(header: Header, field: 'name' | 'linkname'): Buffer {
  const pax = (header.pax ?? {}) as Record<string, string>;
  const inPax = pax[field === 'name' ? 'path' : 'linkpath'] !== undefined;
  return Buffer.from(header[field] ?? '', inPax ? 'utf8' : 'latin1');
}

/** Returns the path of an entry below the folder. Throws a CliError for a name that would lead elsewhere. */
function within(folder: Buffer, name: Buffer): Buffer {
  const names = name.toString('latin1').replace(/\/$/, '').split('/');
  if (names.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw failed(
      `the archive names "${printableName(String(name))}", which is no path in a folder; nothing was written`,
    );
  }
  return Buffer.concat([folder, SLASH, Buffer.from(names.join('/'), 'latin1')]);
}

/** Gives a folder its name, or moves what is in it into the folder that has the name. */
async function put(from: Buffer, to: Buffer): Promise<void> {
  if (!(await typeOf(to))) return rename(from, to);
  const moves = await movesInto(from, to);
  for (const [source, target] of moves) await rename(source, target);
}

/** Returns what has to be renamed. Throws a CliError before anything is, where a folder would have to take a file's place or the reverse. */
async function movesInto(from: Buffer, to: Buffer): Promise<[Buffer, Buffer][]> {
  const moves: [Buffer, Buffer][] = [];
  for (const name of await readdir(from, { encoding: 'buffer' })) {
    const [source, target] = [Buffer.concat([from, SLASH, name]), Buffer.concat([to, SLASH, name])];
    const [own, there] = [await typeOf(source), await typeOf(target)];
    if (own === 'folder' && there === 'folder') moves.push(...(await movesInto(source, target)));
    else if (there && (own === 'folder' || there === 'folder')) {
      throw refused(
        `${printableName(String(target))} is a ${there} here and a ${own} in the session; move it away, or name another place`,
      );
    } else moves.push([source, target]);
  }
  return moves;
}

async function typeOf(path: Buffer): Promise<'folder' | 'file' | undefined> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (!stats) return undefined;
  return stats.isDirectory() ? 'folder' : 'file';
}
