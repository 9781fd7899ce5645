import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from 'node:zlib';
import { KiB } from '../resources/limits.ts';

/** Size up to which the work takes less time than handing it to a thread of the pool and back. */
const SMALL_BYTES = 64 * KiB;

/** A file among the artifacts of a turn. */
export interface PackedFile {
  /** Path in the folder, with `/`: core/artifacts/name.ts. */
  name: string;
  bytes: number;
  /** sha256 of the content, hex. */
  digest: string;
  /** True if its owner may execute it. */
  executable?: true;
}

/**
 * Reasons for which an entry of the folder is not among the artifacts. Symlink: it leads out of the folder, to a folder or to
 * nothing. Special: it is a device, a socket or a FIFO. NotUTF8: its name is not UTF-8. NameTooLong: its path has more than
 * 512 bytes. Unreadable: the runner may not read it. Secret: its name holds a text that is hidden.
 */
export const LEFT_OUT_REASONS = ['Symlink', 'Special', 'NotUTF8', 'NameTooLong', 'Unreadable', 'Secret'] as const;
export type LeftOutReason = (typeof LEFT_OUT_REASONS)[number];

/** Entries of the folder that are not among the artifacts: their number, and the first of them. */
export interface LeftOut {
  count: number;
  entries: { name: string; reason: LeftOutReason }[];
}

export function digestOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Compresses the contents of files, one after the other. */
export async function packContents(contents: readonly Buffer[]): Promise<Buffer> {
  const content = Buffer.concat(contents);
  return content.length <= SMALL_BYTES ? zstdCompressSync(content) : promisify(zstdCompress)(content);
}

/**
 * Returns the contents of the files, one after the other. Undefined where the bytes are not those that the files' sizes and
 * digests say; never takes more memory than these sizes.
 */
export async function unpackContents(files: readonly PackedFile[], packed: Buffer): Promise<Buffer | undefined> {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  let content: Buffer;
  try {
    const limit = { maxOutputLength: Math.max(1, bytes) };
    content = bytes <= SMALL_BYTES ? zstdDecompressSync(packed, limit) : await promisify(zstdDecompress)(packed, limit);
  } catch {
    return undefined;
  }
  if (content.length !== bytes) return undefined;
  let at = 0;
  for (const { bytes, digest } of files) {
    if (digestOf(content.subarray(at, at + bytes)) !== digest) return undefined;
    at += bytes;
  }
  return content;
}
