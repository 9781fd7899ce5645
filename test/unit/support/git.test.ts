import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { Git } from '../../support/git.ts';

let folder: string;
let git: Git;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-git-'));
  git = new Git(folder);
  await git.run('init', '--quiet', '--initial-branch=main');
  await git.run('config', 'user.name', 'somebody');
  await git.run('config', 'user.email', 'somebody@example.com');
  await git.run('config', 'commit.gpgsign', 'false');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Commits a file; resolves to the commit. */
async function commit(file: string): Promise<string | undefined> {
  writeFileSync(join(folder, file), 'text');
  await git.run('add', '.');
  await git.run('commit', '--quiet', '--message', file);
  return git.commit('HEAD');
}

/** Makes HEAD the state of origin's main branch. */
const land = () => git.run('update-ref', 'refs/remotes/origin/main', 'HEAD');

describe('the commit at which HEAD has left origin’s main branch', () => {
  test('is the last that both have, whatever others have landed since', async () => {
    const old = await commit('old.ts');
    await git.run('branch', 'work');
    await commit('theirs.ts');
    await land();
    await git.run('switch', '--quiet', 'work');
    await commit('mine.ts');
    assert.equal(await git.branchPoint(), old);
  });

  test('is none without an origin, without a commit, and where HEAD is on the branch', async () => {
    assert.equal(await git.branchPoint(), undefined);
    await commit('old.ts');
    assert.equal(await git.branchPoint(), undefined);
    await land();
    assert.equal(await git.branchPoint(), undefined);
  });
});
