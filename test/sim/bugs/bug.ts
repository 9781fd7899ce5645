import type { Focus } from '../focus.ts';

/** A classic mistake, put back into the real source: the simulator has to find it. */
export interface Bug {
  name: string;
  edits: readonly Edit[];
  /** Names of the invariants of which one has to be violated. */
  caughtBy: readonly string[];
  /** Seeds within which it has to be found. */
  within: number;
  /** The first seed: a little before the one that finds it at present, because every seed costs a third of a second. */
  from?: number;
  /** What has to come together for the mistake to matter; absent: whatever a seed draws. */
  focus?: Focus;
}

interface Edit {
  file: string;
  /** Occurs in the file exactly once; otherwise the source has moved on, and the bug has to move with it. */
  find: string;
  replace: string;
}
