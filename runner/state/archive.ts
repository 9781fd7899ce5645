import { createHash } from 'node:crypto';

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
  /** Paths that are neither file, directory nor link, and are not in the archive. */
  skipped: string[];
}

/** Where the runner keeps and finds the session's state. */
export interface StateDirectory {
  /** Throws a TurnFailure when it cannot be stored. */
  pack(): Promise<PackedState>;
  /** Replaces the directory's content. Throws an Error, and leaves it as it was, when the archive is not that one. */
  unpack(packed: Buffer, digest: string): Promise<void>;
}
