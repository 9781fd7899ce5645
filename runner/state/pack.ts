import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { createZstdCompress, constants as zlib } from 'node:zlib';
import type { Pack } from 'tar-stream';
import { MAX_STATE_BYTES } from '../../core/resources/limits.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import { errorCode } from '../system/errors.ts';
import { EMPTY_ARCHIVE, NO_STATE, type PackedState } from './archive.ts';
import { archivedBytes, type Described, headerOf } from './header.ts';
import { CHUNK_BYTES, MAX_PLAIN_BYTES } from './limits.ts';
import { readIfThere, walk } from './walk.ts';

/** Number of named entries that are neither file nor directory nor link. */
const NAMED_SKIPPED = 10;
/** Largest files that a refusal names. */
const NAMED_LARGEST = 5;

/**
 * Packs the directory as a compressed archive; equal content gives equal bytes. A background process may still write. A file
 * that grows while it is read is cut, one that shrinks is filled with zeros, and one that is replaced is stored as the new
 * file.
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
  const entries: Counted[] = [];
  const progress: Progress = { plain: EMPTY_ARCHIVE.length, limit, maxBytes, packed: 0, maxPacked, entries };
  const first = new FirstNames();
  for (const entry of walk(directory)) {
    const { type, name, stats } = entry;
    if (type === 'other') {
      if (skipped.length < NAMED_SKIPPED) skipped.push(JSON.stringify(name));
      else unnamed += 1;
      continue;
    }
    const counted = { ...entry, type, bytes: 0, same: type === 'file' ? first.of(stats, name) : undefined };
    counted.bytes = archivedBytes(headerOf(counted));
    progress.plain += counted.bytes;
    // Entries above the limit are still counted, because the message names their size.
    if (progress.plain <= limit) entries.push(counted);
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
    const added = new FirstNames();
    for (const entry of entries) await add(archive, entry, added, progress);
    archive.finalize();
  } catch (error) {
    archive.destroy();
    await collected.catch(() => {});
    throw error;
  }
  return { ...(await collected), skipped };
}

/** An entry, with the bytes that are counted for it in the plain archive. */
interface Counted extends Described {
  path: string;
  bytes: number;
}

/** The first names of files that have several: a later name of one of them is a hard link. */
class FirstNames {
  readonly #names = new Map<string, string>();

  /** Returns the first name of a file; undefined where `name` is the first, or the only one. */
  of({ nlink, dev, ino }: BigIntStats, name: string): string | undefined {
    if (nlink < 2n) return undefined;
    const key = `${dev}:${ino}`;
    const first = this.#names.get(key);
    if (first === undefined) this.#names.set(key, name);
    return first;
  }
}

/** Progress of packing, which ends early above its limit. */
interface Progress {
  /** Bytes of the plain archive, as they are counted, and their limit, which may be that of the caller. */
  plain: number;
  readonly limit: number;
  readonly maxBytes: number | undefined;
  packed: number;
  readonly maxPacked: number;
  readonly entries: readonly Counted[];
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
function largest(entries: readonly Counted[]): string {
  const bytes = ({ type, stats }: Counted) => (type === 'file' ? Number(stats.size) : 0);
  const files = entries.toSorted((a, b) => bytes(b) - bytes(a)).slice(0, NAMED_LARGEST);
  const named = files.map((entry) => `${JSON.stringify(entry.name)} (${bytes(entry)} bytes)`);
  return named.length > 0 ? `; the largest files are ${named.join(', ')}` : '';
}

async function add(archive: Pack, entry: Counted, added: FirstNames, progress: Progress): Promise<void> {
  if (entry.type !== 'file') {
    archive.entry(headerOf(entry));
    return;
  }
  const fd = openFile(entry.path);
  if (fd === undefined) return;
  try {
    const now = fstatSync(fd, { bigint: true });
    if (!now.isFile()) return;
    // A file that was replaced is stored as it is now, one that only changed with the size and the time that were counted, or less.
    if (!isSame(now, entry.stats)) entry.stats = now;
    else if (now.size < entry.stats.size) entry.stats = Object.assign(entry.stats, { size: now.size });
    entry.same = added.of(now, entry.name);
    const header = headerOf(entry);
    count(archivedBytes(header), entry, progress);
    await copyFile(fd, header.size, archive.entry(header), progress);
  } finally {
    closeSync(fd);
  }
}

/** Replaces the count of an entry. */
function count(bytes: number, entry: Counted, progress: Progress): void {
  progress.plain += bytes - entry.bytes;
  entry.bytes = bytes;
  checkPlain(progress);
}

/** Opens a file; returns undefined where it has vanished or was replaced. */
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
 * has no times of birth, Node takes those of the last change: a file that grows is another one there, and stored as it is then.
 */
function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.ino === other.ino && one.dev === other.dev && one.birthtimeNs === other.birthtimeNs;
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
