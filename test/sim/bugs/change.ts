import { Git } from '../../support/git.ts';
import type { Change } from './choose.ts';

/** Seconds and number of the last commits that are the change where HEAD is on the main branch: it does not show where a landing began. */
const LANDED_SECONDS = 24 * 3600;
const LANDED_COMMITS = 20;

const FOUND = 'test/sim/bugs/found.json';

/**
 * Resolves to what differs between the working tree and origin's main branch; where HEAD is on it, or there is no origin, to what the
 * last commits have changed. Resolves to undefined in a shallow clone and where there is no repository.
 */
export async function changeIn(folder: string): Promise<Change | undefined> {
  const git = new Git(folder);
  const isShallow = await git.run('rev-parse', '--is-shallow-repository').catch(() => 'true');
  if (isShallow === 'true' || !(await git.commit('HEAD'))) return undefined;
  const base = (await git.branchPoint()) ?? (await beforeLastCommits(git));
  // A first commit has changed all that there is.
  const tracked = await (base ? git.run('diff', '--name-only', '--no-renames', '-z', base) : git.run('ls-files', '-z'));
  const untracked = await git.run('ls-files', '-z', '--others', '--exclude-standard');
  return {
    commits: Number(await git.run('rev-list', '--count', 'HEAD')),
    files: new Set(`${tracked}\0${untracked}`.split('\0').filter((file) => file !== '')),
    earlierBugs: base ? await bugsOf(git, base) : undefined,
  };
}

/** Resolves to the names of the bugs that a commit has; to undefined where it has no list of them. */
async function bugsOf(git: Git, commit: string): Promise<ReadonlySet<string> | undefined> {
  const found = await git.run('show', `${commit}:${FOUND}`).catch(() => undefined);
  return found === undefined ? undefined : new Set(Object.keys(JSON.parse(found)));
}

/** Resolves to the first parent of the last commits, HEAD always among these; to undefined where they are all that there is. */
async function beforeLastCommits(git: Git): Promise<string | undefined> {
  const log = await git.run('log', '--first-parent', '--format=%ct', `--max-count=${LANDED_COMMITS}`);
  const dates = log.split('\n').map(Number);
  const older = dates.findIndex((date) => date < dates[0]! - LANDED_SECONDS);
  return git.commit(`HEAD~${older === -1 ? dates.length : older}`);
}
