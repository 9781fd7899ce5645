import type { LeftOut, PackedFile } from '../../core/artifacts/packed.ts';

/** What a turn left in its folder, after redaction. */
export interface CollectedArtifacts {
  files: PackedFile[];
  /** Contents of the files, in their order. */
  contents: Buffer[];
  leftOut: LeftOut;
  /** Number of texts that were hidden in the contents. */
  redactions: number;
}

/** The folder in which a turn leaves files for whoever gave it. */
export interface OutputDirectory {
  /** Empties the folder, also one that an earlier turn has replaced. Throws a TurnFailure when that fails. */
  empty(): void;
  /** Reads what is in the folder. Throws a TurnFailure when it is too much, or when the folder is gone. */
  collect(): Promise<CollectedArtifacts>;
}
