import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { changeIn } from '../../sim/bugs/change.ts';
import { Git } from '../../support/git.ts';

const HOUR = 3600;
const START = 1_700_000_000;

let root: string;
let folder: string;
let git: Git;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'berth-change-'));
  folder = join(root, 'checkout');
  mkdirSync(folder);
  git = new Git(folder);
  await git.run('init', '--quiet', '--initial-branch=main');
  await git.run('config', 'user.name', 'somebody');
  await git.run('config', 'user.email', 'somebody@example.com');
  await git.run('config', 'commit.gpgsign', 'false');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(file: string, text = 'text'): void {
  mkdirSync(join(folder, dirname(file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

/** Commits a file with the date, in seconds after the start. */
async function commit(file: string, at: number, text?: string): Promise<void> {
  write(file, text);
  await git.run('add', '.');
  // Git reads the date of a commit from its environment only.
  process.env.GIT_COMMITTER_DATE = `${START + at} +0000`;
  await git.run('commit', '--quiet', '--message', file).finally(() => delete process.env.GIT_COMMITTER_DATE);
}

/** Makes HEAD the state of origin's main branch. */
const land = () => git.run('update-ref', 'refs/remotes/origin/main', 'HEAD');

async function filesOf(): Promise<string[]> {
  const change = await changeIn(folder);
  return [...change!.files].toSorted();
}

describe('the change', () => {
  test('is what differs from origin’s main branch: committed, staged, unstaged and untracked files', async () => {
    write('.gitignore', 'build/\n');
    for (const file of ['old.ts', 'edited.ts', 'staged.ts', 'gone.ts']) await commit(file, 0);
    await land();
    await commit('committed.ts', HOUR);
    write('staged.ts', 'other');
    await git.run('add', 'staged.ts');
    write('edited.ts', 'other');
    rmSync(join(folder, 'gone.ts'));
    write('sub/ünträcked file.ts');
    write('build/ignored.ts');
    const all = ['committed.ts', 'edited.ts', 'gone.ts', 'staged.ts', 'sub/ünträcked file.ts'];
    assert.deepEqual(await filesOf(), all);
    assert.equal((await changeIn(folder))?.commits, 5);
  });

  test('has nothing of what others have landed since the branch left', async () => {
    await commit('old.ts', 0);
    await git.run('branch', 'work');
    await commit('theirs.ts', HOUR);
    await land();
    await git.run('switch', '--quiet', 'work');
    await commit('mine.ts', HOUR);
    assert.deepEqual(await filesOf(), ['mine.ts']);
  });

  test('is that of the last day before HEAD where HEAD is on the main branch or there is no origin', async () => {
    await commit('old.ts', 0);
    await commit('older.ts', HOUR);
    await commit('new.ts', 26 * HOUR);
    await commit('newest.ts', 48 * HOUR);
    assert.deepEqual(await filesOf(), ['new.ts', 'newest.ts']);
    await land();
    assert.deepEqual(await filesOf(), ['new.ts', 'newest.ts']);
  });

  test('is that of HEAD alone where the commits before it are old', async () => {
    await commit('old.ts', 0);
    await commit('new.ts', 100 * HOUR);
    assert.deepEqual(await filesOf(), ['new.ts']);
  });

  test('is that of no more than twenty commits', async () => {
    for (let i = 10; i < 33; i++) await commit(`${i}.ts`, 0);
    assert.deepEqual(
      await filesOf(),
      Array.from({ length: 20 }, (_, i) => `${i + 13}.ts`),
    );
  });

  test('is everything where all commits are of the last day', async () => {
    await commit('first.ts', 0);
    await commit('second.ts', HOUR);
    assert.deepEqual(await filesOf(), ['first.ts', 'second.ts']);
  });

  test('tells which planted bugs there were before it', async () => {
    const earlierBugs = async () => (await changeIn(folder))?.earlierBugs;
    await commit('old.ts', 0);
    await land();
    assert.equal(await earlierBugs(), undefined);
    await commit('test/sim/bugs/found.json', HOUR, '{ "one": 1, "two": 2 }');
    await land();
    await commit('test/sim/bugs/found.json', HOUR, '{ "one": 1, "three": 3 }');
    assert.deepEqual(await earlierBugs(), new Set(['one', 'two']));
  });

  test('is unknown in a shallow clone, in a repository without commits and in a folder without git', async () => {
    assert.equal(await changeIn(folder), undefined);
    for (const file of ['a.ts', 'b.ts']) await commit(file, 0);
    const clone = join(root, 'clone');
    await git.run('clone', '--quiet', '--depth=1', `file://${folder}`, clone);
    assert.equal(await changeIn(clone), undefined);
    rmSync(join(folder, '.git'), { recursive: true });
    assert.equal(await changeIn(folder), undefined);
  });
});
