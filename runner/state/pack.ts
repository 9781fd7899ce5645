import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { createZstdCompress, constants as zlib, zstdCompressSync } from 'node:zlib';
import type { Pack } from 'tar-stream';
import { MAX_STATE_BYTES } from '../../core/resources/limits.ts';
import { TurnFailure } from '../errors.ts';
import { EMPTY_ARCHIVE, EMPTY_DIGEST, type PackedState } from './archive.ts';
import { MAX_PLAIN_BYTES } from './limits.ts';
import { type Entry, ifThere, walk } from './walk.ts';

const CHUNK_BYTES = 256 * 1024;

/**
 * The directory as a compressed archive, the same for the same content. Of a file that grows meanwhile its first part is
 * taken, one that shrinks is filled with zeros: a background process may still write. Throws a TurnFailure.
 */
export async function packDirectory(directory: string): Promise<PackedState> {
  const skipped: string[] = [];
  const entries: Entry[] = [];
  let expected = 0;
  for (const entry of walk(directory)) {
    if (entry.type === 'other') {
      skipped.push(entry.name);
      continue;
    }
    entries.push(entry);
    expected += entry.type === 'file' ? entry.stats.size : 0;
    if (expected > MAX_PLAIN_BYTES) throw tooLarge(`more than ${MAX_PLAIN_BYTES} bytes`, MAX_PLAIN_BYTES);
  }
  if (entries.length === 0) {
    return { digest: EMPTY_DIGEST, bytes: EMPTY_ARCHIVE.length, packed: zstdCompressSync(EMPTY_ARCHIVE), skipped };
  }
  // Only now: a session without state never pays for it.
  const tar = await import('tar-stream');
  const archive = tar.pack();
  const progress = { packed: 0 };
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

/** How far packing has come: over its limit it ends early. */
interface Progress {
  packed: number;
}

async function collect(archive: Pack, progress: Progress): Promise<Omit<PackedState, 'skipped'>> {
  const hash = createHash('sha256');
  const compress = createZstdCompress({ params: { [zlib.ZSTD_c_compressionLevel]: 1 } });
  const pieces: Buffer[] = [];
  let bytes = 0;
  compress.on('data', (piece: Buffer) => {
    progress.packed += piece.length;
    if (progress.packed <= MAX_STATE_BYTES) pieces.push(piece);
  });
  const finished = once(compress, 'end');
  for await (const chunk of archive as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
    if (!compress.write(chunk)) await once(compress, 'drain');
  }
  compress.end();
  await finished;
  checkPacked(progress);
  return { digest: hash.digest('hex'), bytes, packed: Buffer.concat(pieces, progress.packed) };
}

function checkPacked({ packed }: Progress): void {
  if (packed > MAX_STATE_BYTES) throw tooLarge(`more than ${MAX_STATE_BYTES} bytes packed`, MAX_STATE_BYTES);
}

async function add(archive: Pack, entry: Entry, progress: Progress): Promise<void> {
  // Owner and the times of directories differ from one incarnation to the next and say nothing.
  const common = { name: entry.name, mode: entry.stats.mode & 0o777, uid: 0, gid: 0 };
  const mtime = new Date(Math.floor(entry.stats.mtimeMs / 1000) * 1000);
  if (entry.type === 'directory') archive.entry({ ...common, type: 'directory', mtime: new Date(0) });
  else if (entry.target !== undefined) {
    archive.entry({ ...common, type: 'symlink', linkname: entry.target, mode: 0o777, mtime: new Date(0) });
  } else {
    const fd = ifThere(() => openSync(entry.path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
    if (fd === undefined) return;
    try {
      const { size } = fstatSync(fd);
      await copyFile(fd, size, archive.entry({ ...common, type: 'file', size, mtime }), progress);
    } finally {
      closeSync(fd);
    }
  }
}

async function copyFile(fd: number, size: number, sink: ReturnType<Pack['entry']>, progress: Progress): Promise<void> {
  for (let at = 0; at < size; ) {
    checkPacked(progress);
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - at));
    readSync(fd, chunk, 0, chunk.length, at);
    at += chunk.length;
    if (!sink.write(chunk)) await once(sink, 'drain');
  }
  sink.end(null);
}

function tooLarge(size: string, limit: number): TurnFailure {
  return new TurnFailure('StateNotStored', `the state in BERTH_STATE_DIR has ${size}; at most ${limit} can be stored`);
}
