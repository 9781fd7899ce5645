import { type BigIntStats, constants } from 'node:fs';
import type { Header } from 'tar-stream';

/** Header of an entry as it is given to tar-stream. */
export interface EntryHeader {
  name: string;
  type: 'file' | 'directory' | 'symlink';
  mode: number;
  uid: number;
  gid: number;
  size: number;
  mtime: Date;
  devmajor: number;
  devminor: number;
  linkname?: string;
  /** Records in front of the header, with the values that do not fit into it. */
  pax?: Record<string, string>;
}

/** What an archive holds of a file, directory or link. */
export interface Described {
  /** Path within the archive, with `/`. */
  name: string;
  type: 'file' | 'directory' | 'symlink';
  stats: BigIntStats;
  /** Target of a symlink. */
  target?: string | undefined;
  /** Name of an earlier file of the archive that is the same file: a hard link. */
  same?: string | undefined;
}

/** Block size of a tar archive, bytes: a header is one block, content is padded to whole blocks. */
const BLOCK_BYTES = 512;
/** Bytes of a name, of a link target and of the directories of a name that a header holds. */
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
/** Last time that a header can hold as tar-stream writes it, microseconds. */
const LAST_US = 2n ** 31n * 1_000_000n - 1n;
/**
 * Path of an earlier file of the archive that is the same file. The entry has the content too: releases that ignore the record restore
 * two files.
 */
const SAME = 'BERTH.same';

/**
 * Returns the header of an entry. Owner and the times of directories and links are left out, because they differ from one incarnation
 * to the next. The type bits, which the header drops, are included, because tar-stream treats a mode of 0 as missing. The header
 * holds whole seconds from 1970 to 2038. The rest of a second stands in the numbers of a device, which no file has: milliseconds and
 * microseconds. A record would take 1,024 bytes of each file, and releases before did not count it.
 */
export function headerOf({ name, type, stats, target, same }: Described): EntryHeader {
  const header = { name, type, uid: 0, gid: 0, size: 0, mtime: new Date(0), devmajor: 0, devminor: 0 };
  if (type === 'symlink') return { ...header, mode: constants.S_IFLNK | 0o777, linkname: target ?? '' };
  const mode = Number(stats.mode) & (constants.S_IFMT | 0o777);
  if (type === 'directory') return { ...header, mode };
  const us = clamped(stats.mtimeNs / 1000n);
  const rest = Number(us % 1_000_000n);
  return {
    ...header,
    mode,
    size: Number(stats.size),
    mtime: new Date(Number(us / 1_000_000n) * 1000),
    devmajor: Math.floor(rest / 1000),
    devminor: rest % 1000,
    ...(same !== undefined && { pax: { [SAME]: same } }),
  };
}

/** Returns the bytes that a file takes in the archive, if its header needs no records in front of it. `size` is in bytes. */
export function bytesOfFile(size: number): number {
  return BLOCK_BYTES + padded(size);
}

/** Returns the bytes that an entry takes in the archive: its header with the records in front of it, and its content. */
export function archivedBytes(header: EntryHeader): number {
  const own = bytesOfFile(header.size);
  if (!header.pax && fits(header)) return own;
  const records = { path: header.name, ...(header.linkname && { linkpath: header.linkname }), ...header.pax };
  let bytes = 0;
  for (const [key, value] of Object.entries(records)) bytes += recordBytes(key, value);
  return own + BLOCK_BYTES + padded(bytes);
}

/** Returns the time of the last change for `futimes`. */
export function timeOf({ mtime, devmajor = 0, devminor = 0 }: Header): Date | number | undefined {
  const us = devmajor * 1000 + devminor;
  if (!mtime || us <= 0 || us >= 1_000_000) return mtime;
  // The middle of the microsecond: a double is not exact, and the file system must not round down to the one before.
  return mtime.getTime() / 1000 + (us + 0.5) / 1_000_000;
}

/** Returns the name of the earlier entry that is the same file. */
export function sameAs({ pax }: Header): string | undefined {
  return (pax as Record<string, string> | null | undefined)?.[SAME];
}

function clamped(us: bigint): bigint {
  if (us < 0n) return 0n;
  return us < LAST_US ? us : LAST_US;
}

/** Reports whether tar-stream writes name and target into the header itself. It splits a long name at its first directories. */
function fits({ name, linkname = '' }: EntryHeader): boolean {
  if (Buffer.byteLength(name) !== name.length || Buffer.byteLength(linkname) > NAME_BYTES) return false;
  let start = 0;
  while (name.length - start > NAME_BYTES) {
    const end = name.indexOf('/', start);
    if (end === -1) return false;
    start = end + 1;
  }
  return start - 1 <= PREFIX_BYTES;
}

/** Bytes of `LENGTH KEY=VALUE` and a line feed, where the length counts its own digits. */
function recordBytes(key: string, value: string): number {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  const bytes = rest + String(rest).length;
  return rest + String(bytes).length;
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
}
