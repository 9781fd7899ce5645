/** Names a build after the commit and the changes that it is made of, so that two different builds never have the same name. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface BuildName {
  /** Version of the release, from package.json. */
  version: string;
  /** Version and commit: `0.1.0-g1a2b3c4d`. A checkout with changes adds a digest of them: `0.1.0-g1a2b3c4d-dirty-5f3e12ab`. */
  tag: string;
  /** Full commit, with the same mark. */
  revision: string;
}

/** Digits of a commit and of a digest in a tag. */
const DIGITS = 8;

/** Names the build of the checkout `folder`. Rejects where it is no git repository. */
export async function buildName(folder: string): Promise<BuildName> {
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const commit = (await git(folder, 'rev-parse', 'HEAD')).toString().trim();
  const changes = await changesIn(folder);
  const mark = changes === undefined ? '' : `-dirty-${changes}`;
  return { version, tag: `${version}-g${commit.slice(0, DIGITS)}${mark}`, revision: `${commit}${mark}` };
}

/** Digest of what differs from the commit, files that git does not know included; undefined where nothing does. */
async function changesIn(folder: string): Promise<string | undefined> {
  const diff = await git(folder, 'diff', 'HEAD', '--binary', '--no-ext-diff', '--no-textconv');
  const list = await git(folder, 'ls-files', '--others', '--exclude-standard', '-z');
  const unknown = list.toString().split('\0').filter(Boolean);
  if (diff.length === 0 && unknown.length === 0) return undefined;
  const hash = createHash('sha256').update(diff);
  for (const path of unknown) {
    // A link that leads nowhere or to a folder has no content.
    const content = await readFile(join(folder, path)).catch(() => '');
    hash.update(`\0${path}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, DIGITS);
}

async function git(folder: string, ...args: string[]): Promise<Buffer> {
  // A container's checkout often belongs to another user, whose repository git refuses.
  const all = ['-c', 'safe.directory=*', ...args];
  const options = { cwd: folder, maxBuffer: 2 ** 28, encoding: 'buffer', timeout: 60_000 } as const;
  const { stdout } = await promisify(execFile)('git', all, options).catch((error) => {
    const cause = error.stderr?.toString().trim() || error.message;
    throw new Error(
      `the commit of ${folder} is unknown, and images are named after it: ${cause}; build them in a clone of the repository`,
    );
  });
  return stdout;
}
