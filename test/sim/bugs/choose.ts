import type { Bug } from './bug.ts';

/** Every bug runs once in as many consecutive numbers of commits. */
const PARTS = 10;

/** What a commit, and what is not committed, have changed. */
export interface Change {
  /** Commits up to HEAD. */
  commits: number;
  /** Paths of the files that differ. */
  files: ReadonlySet<string>;
  /** Names of the planted bugs from before the change; undefined where they are unknown. */
  earlierBugs: ReadonlySet<string> | undefined;
}

export interface Choice<B> {
  bugs: B[];
  /** Why these. */
  reason: string;
}

/**
 * Chooses the planted bugs of a run: all (`wanted` is `all`), those whose name contains `wanted`, or else a tenth of them, by the
 * number of commits, with those that the change adds and those whose edits are in files that it touches. Throws where no name contains `wanted`.
 */
export function choose<B extends Pick<Bug, 'name' | 'edits'>>(
  bugs: readonly B[],
  wanted: string | undefined,
  change: Change | undefined,
): Choice<B> {
  if (wanted === 'all') return { bugs: [...bugs], reason: `all ${bugs.length}` };
  if (wanted) {
    const named = bugs.filter(({ name }) => name.includes(wanted));
    if (named.length === 0) throw new Error(`no planted bug has "${wanted}" in its name; BUGS=all runs all of them`);
    return { bugs: named, reason: `${named.length} of ${bugs.length}, with "${wanted}" in their names` };
  }
  const part = (change?.commits ?? 0) % PARTS;
  const isTouched = ({ edits }: B) => edits.some(({ file }) => change?.files.has(file));
  const isNew = ({ name }: B) => change?.earlierBugs?.has(name) === false;
  const chosen = bugs.filter((bug, i) => i % PARTS === part || isTouched(bug) || isNew(bug));
  const why = change
    ? `tenth ${part + 1} of ${PARTS} by the number of commits, and all that the change adds or whose files it touches`
    : 'the first tenth, because the history is not there to tell what has changed';
  return { bugs: chosen, reason: `${chosen.length} of ${bugs.length}: ${why}; BUGS=all runs all of them` };
}
