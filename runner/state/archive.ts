import { createHash } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';

/** An archive without entries: two empty blocks. */
export const EMPTY_ARCHIVE = Buffer.alloc(1024);
export const EMPTY_DIGEST = createHash('sha256').update(EMPTY_ARCHIVE).digest('hex');

/** A state directory as bytes. */
export interface PackedState {
  /** sha256 of the plain archive, hex: equal for equal content, names, modes and times. */
  digest: string;
  /** Bytes of the plain archive. */
  bytes: number;
  packed: Buffer;
  /** The first paths that are neither file, directory nor link, and are not in the archive, quoted; how many more there are. */
  skipped: string[];
}

/** Of a session whose state is not kept: as if there were none. */
export const NO_STATE: PackedState = {
  digest: EMPTY_DIGEST,
  bytes: EMPTY_ARCHIVE.length,
  packed: zstdCompressSync(EMPTY_ARCHIVE),
  skipped: [],
};

/** Where the runner keeps and finds the session's state. */
export interface StateDirectory {
  /** Throws a TurnFailure when it cannot be stored; `maxBytes` where the limit is another by now than at the binding. */
  pack(maxBytes?: number): Promise<PackedState>;
  /** Replaces the directory's content. Throws an Error, and leaves it as it was, when the archive is not that one. */
  unpack(packed: Buffer, digest: string): Promise<void>;
}
