import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { createZstdCompress, constants as zlib } from 'node:zlib';
import type { Pack } from 'tar-stream';
import { MAX_STATE_BYTES } from '../../core/resources/limits.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { errorCode } from '../errors.ts';
import { EMPTY_ARCHIVE, NO_STATE, type PackedState } from './archive.ts';
import { CHUNK_BYTES, MAX_PLAIN_BYTES } from './limits.ts';
import { type Entry, readIfThere, walk } from './walk.ts';

/** Number of named entries that are neither file nor directory nor link. */
const NAMED_SKIPPED = 10;
/** Largest files that a refusal names. */
const NAMED_LARGEST = 5;
/** Last time that a tar header can hold as written here, seconds. */
const LAST_SECOND = 2 ** 31 - 1;
/** Block size of a tar archive: a header is one block, content is padded to whole blocks. */
const BLOCK_BYTES = 512;

/**
 * Packs the directory as a compressed archive; equal content gives equal bytes. A background process may still write: a
 * file that grows meanwhile is cut, one that shrinks is filled with zeros, and one that is replaced is stored as it is then.
 * Throws a TurnFailure. `maxBytes` limits the plain archive, `maxPacked` the packed one.
 */
export async function packDirectory(
  directory: string,
  maxBytes?: number,
  maxPacked = MAX_STATE_BYTES,
): Promise<PackedState> {
  const limit = Math.min(maxBytes ?? MAX_PLAIN_BYTES, MAX_PLAIN_BYTES);
  const root = readIfThere(() => lstatSync(directory));
  if (root && !root.isDirectory()) {
    throw new TurnFailure(
      'StateNotStored',
      'BERTH_STATE_DIR is no directory any more: something else was put in its place',
    );
  }
  const skipped: string[] = [];
  let unnamed = 0;
  const entries: Entry[] = [];
  const progress: Progress = { plain: EMPTY_ARCHIVE.length, limit, maxBytes, packed: 0, maxPacked, entries };
  for (const entry of walk(directory)) {
    if (entry.type === 'other') {
      if (skipped.length < NAMED_SKIPPED) skipped.push(JSON.stringify(entry.name));
      else unnamed += 1;
      continue;
    }
    progress.plain += BLOCK_BYTES + (entry.type === 'file' ? padded(entry.stats.size) : 0);
    // Entries above the limit are still counted, because the message names their size.
    if (progress.plain <= limit) entries.push(entry);
  }
  if (unnamed) skipped.push(`and ${unnamed} more`);
  checkPlain(progress);
  if (entries.length === 0) {
    return { ...NO_STATE, skipped };
  }
  // The module is loaded here, so that a session without state never loads it.
  const tar = await import('tar-stream');
  const archive = tar.pack();
  const collected = collect(archive, progress);
  try {
    for (const entry of entries) await add(archive, entry, progress);
    archive.finalize();
  } catch (error) {
    archive.destroy();
    await collected.catch(() => {});
    throw error;
  }
  return { ...(await collected), skipped };
}

/** Progress of packing, which ends early above its limit. */
interface Progress {
  /** Bytes of the plain archive, as they are counted, and their limit, which may be that of the caller. */
  plain: number;
  readonly limit: number;
  readonly maxBytes: number | undefined;
  packed: number;
  readonly maxPacked: number;
  readonly entries: readonly Entry[];
}

async function collect(archive: Pack, progress: Progress): Promise<Omit<PackedState, 'skipped'>> {
  const hash = createHash('sha256');
  const compress = createZstdCompress({ chunkSize: CHUNK_BYTES, params: { [zlib.ZSTD_c_compressionLevel]: 1 } });
  const pieces: Buffer[] = [];
  let bytes = 0;
  compress.on('data', (piece: Buffer) => {
    progress.packed += piece.length;
    if (progress.packed <= progress.maxPacked) pieces.push(piece);
  });
  const finished = once(compress, 'end');
  for await (const piece of joined(archive as AsyncIterable<Buffer>)) {
    hash.update(piece);
    bytes += piece.length;
    if (!compress.write(piece)) await once(compress, 'drain');
  }
  compress.end();
  await finished;
  checkPacked(progress);
  return { digest: hash.digest('hex'), bytes, packed: Buffer.concat(pieces, progress.packed) };
}

/** Joins chunks up to `CHUNK_BYTES`: an archive has a header, the content and zeros behind it for each file, one chunk each. */
async function* joined(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes + chunk.length > CHUNK_BYTES && bytes > 0) {
      yield Buffer.concat(held, bytes);
      held = [];
      bytes = 0;
    }
    if (chunk.length >= CHUNK_BYTES) {
      yield chunk;
      continue;
    }
    held.push(chunk);
    bytes += chunk.length;
  }
  if (bytes > 0) yield Buffer.concat(held, bytes);
}

function checkPlain({ plain, limit, maxBytes }: Progress): void {
  if (plain <= limit) return;
  const set = limit === maxBytes ? ' (persistence.maxState)' : '';
  throw tooLarge(`${plain} bytes as an archive`, `${limit}${set} can be stored`);
}

function checkPacked({ packed, maxPacked, entries }: Progress): void {
  if (packed <= maxPacked) return;
  throw tooLarge(`more than ${maxPacked} bytes packed`, `${maxPacked} can be stored${largest(entries)}`);
}

/** Names the largest files of a state that is too large. */
function largest(entries: readonly Entry[]): string {
  const bytes = ({ type, stats }: Entry) => (type === 'file' ? stats.size : 0);
  const files = entries.toSorted((a, b) => bytes(b) - bytes(a)).slice(0, NAMED_LARGEST);
  const named = files.map((entry) => `${JSON.stringify(entry.name)} (${bytes(entry)} bytes)`);
  return named.length > 0 ? `; the largest files are ${named.join(', ')}` : '';
}

async function add(archive: Pack, entry: Entry, progress: Progress): Promise<void> {
  if (entry.type === 'directory') {
    archive.entry({ ...commonOf(entry), type: 'directory', mtime: new Date(0) });
  } else if (entry.target !== undefined) {
    const link = { type: 'symlink', linkname: entry.target, mode: 0o777, mtime: new Date(0) } as const;
    archive.entry({ ...commonOf(entry), ...link });
  } else {
    const fd = openFile(entry.path);
    if (fd === undefined) return;
    try {
      const now = fstatSync(fd);
      if (!now.isFile()) return;
      if (!isSame(now, entry.stats)) {
        progress.plain += padded(now.size) - padded(entry.stats.size);
        entry.stats = now;
        checkPlain(progress);
      }
      // The size is the one that was counted, or less.
      const size = Math.min(now.size, entry.stats.size);
      const seconds = Math.floor(entry.stats.mtimeMs / 1000);
      const mtime = new Date(Math.min(Math.max(seconds, 0), LAST_SECOND) * 1000);
      await copyFile(fd, size, archive.entry({ ...commonOf(entry), type: 'file', size, mtime }), progress);
    } finally {
      closeSync(fd);
    }
  }
}

/**
 * Owner and the times of directories are left out, because they differ from one incarnation to the next. The type bits, which
 * the header drops, are included, because tar-stream treats a mode of 0 as missing.
 */
function commonOf({ name, stats }: Entry) {
  return { name, mode: stats.mode & (constants.S_IFMT | 0o777), uid: 0, gid: 0 };
}

/** Opens a file; undefined where it has vanished, or something else was put in its place, meanwhile. */
function openFile(path: string): number | undefined {
  return readIfThere(() => {
    try {
      return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (['ELOOP', 'ENXIO'].includes(errorCode(error))) return undefined;
      throw error;
    }
  });
}

/**
 * Reports whether two looks saw one file. The number of a file that was replaced can be that of another one soon. Where the kernel
 * tells no times of birth, Node takes those of the last change: a file that grows is another one there, and stored as it is then.
 */
function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev && one.birthtimeMs === other.birthtimeMs;
}

/** Bytes that a content takes in the archive. */
function padded(size: number): number {
  return Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
}

async function copyFile(fd: number, size: number, sink: ReturnType<Pack['entry']>, progress: Progress): Promise<void> {
  for (let at = 0; at < size; ) {
    checkPacked(progress);
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - at));
    // File systems in user space may return fewer bytes than there are.
    let filled = 0;
    for (let read = -1; read !== 0 && filled < chunk.length; filled += read) {
      read = readSync(fd, chunk, filled, chunk.length - filled, at + filled);
    }
    at += chunk.length;
    if (!sink.write(chunk)) await once(sink, 'drain');
  }
  sink.end(null);
}

function tooLarge(size: string, limit: string): TurnFailure {
  return new TurnFailure('StateTooLarge', `the state in BERTH_STATE_DIR has ${size}; at most ${limit}`);
}
