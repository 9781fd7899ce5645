import type { Focus } from '../focus.ts';

/** A classic mistake that is planted in the real source. The simulator has to find it. */
export interface Bug {
  name: string;
  edits: readonly Edit[];
  /** Names of invariants; at least one of them has to be violated. */
  caughtBy: readonly string[];
  /** Maximum number of seeds until the bug is found, from its seed in `found.json` on. */
  within: number;
  /** Conditions under which the mistake matters; absent: the seed draws all of them. */
  focus?: Focus;
}

interface Edit {
  file: string;
  /** Text that occurs in the file exactly once; otherwise the source has changed, and the bug has to follow it. */
  find: string;
  replace: string;
}

/**
 * Choices of every hunt that a bug's focus does not make itself: what changes much of a world is left out, so that a bug of everything
 * else is found at its recorded seed.
 */
export const THIN: Focus = {
  pools: false,
  followers: false,
  sharing: false,
  writing: false,
  remakes: false,
  ages: false,
  rights: false,
  garbled: false,
  visitors: false,
};

/** Choices that leave out of a world what many mistakes have nothing to do with. */
export const PLAIN = { files: false, restarts: false, environments: false, protections: false, releases: false };
