import { createHash } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';

/** Archive without entries: two empty blocks. */
export const EMPTY_ARCHIVE = Buffer.alloc(1024);
export const EMPTY_DIGEST = createHash('sha256').update(EMPTY_ARCHIVE).digest('hex');

/** A state directory as bytes. */
export interface PackedState {
  /** sha256 of the plain archive, hex: equal for equal content, names, modes and times. */
  digest: string;
  /** Bytes of the plain archive. */
  bytes: number;
  packed: Buffer;
  /**
   * Quoted paths of the first entries that are left out because they are neither file, directory nor link, and the
   * number of further ones.
   */
  skipped: string[];
}

/** State of a session whose state is not kept: the empty one. */
export const NO_STATE: PackedState = {
  digest: EMPTY_DIGEST,
  bytes: EMPTY_ARCHIVE.length,
  packed: zstdCompressSync(EMPTY_ARCHIVE),
  skipped: [],
};

/** Packs and restores the session's state directory. */
export interface StateDirectory {
  /**
   * Packs the directory. `maxBytes` replaces the limit of the binding. Throws a TurnFailure when the state cannot be
   * stored.
   */
  pack(maxBytes?: number): Promise<PackedState>;
  /**
   * Replaces the directory's content. Throws an Error, and leaves the directory as it was, when the archive does not
   * have this digest.
   */
  unpack(packed: Buffer, digest: string): Promise<void>;
}
