import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { choose } from '../../sim/bugs/choose.ts';

const bugs = Array.from({ length: 23 }, (_, i) => ({
  name: `bug ${i}`,
  edits: [
    { file: 'a.ts', find: 'a', replace: 'b' },
    { file: `${i}.ts`, find: 'a', replace: 'b' },
  ],
}));
const change = (commits: number, files: string[] = [], earlierBugs?: string[]) => ({
  commits,
  files: new Set(files),
  earlierBugs: earlierBugs && new Set(earlierBugs),
});
const namesOf = (chosen: { name: string }[]) => chosen.map(({ name }) => name);

describe('planted bugs of a run', () => {
  test.for([0, 7, 721])('from %i commits on, each runs once in ten consecutive numbers of commits', (first) => {
    const runs = Array.from({ length: 10 }, (_, i) => choose(bugs, undefined, change(first + i)).bugs);
    assert.deepEqual(namesOf(runs.flat()).toSorted(), namesOf(bugs).toSorted());
    for (const run of runs) assert.ok(run.length === 2 || run.length === 3, `${run.length} at once`);
  });

  test('one whose file the change touches runs at every number of commits', () => {
    for (let commits = 0; commits < 10; commits++) {
      const { bugs: chosen } = choose(bugs, undefined, change(commits, ['14.ts', 'README.md']));
      assert.ok(namesOf(chosen).includes('bug 14'));
      assert.ok(chosen.length <= 4);
    }
    assert.equal(choose(bugs, undefined, change(3, ['a.ts'])).bugs.length, 23);
  });

  test('one that the change adds runs at every number of commits', () => {
    const earlier = namesOf(bugs).filter((name) => name !== 'bug 14');
    for (let commits = 0; commits < 10; commits++)
      assert.ok(namesOf(choose(bugs, undefined, change(commits, [], earlier)).bugs).includes('bug 14'));
    assert.deepEqual(namesOf(choose(bugs, undefined, change(5, [], earlier)).bugs), ['bug 5', 'bug 14', 'bug 15']);
  });

  test('without a history they are the first tenth, and the reason says so', () => {
    const { bugs: chosen, reason } = choose(bugs, undefined, undefined);
    assert.deepEqual(namesOf(chosen), ['bug 0', 'bug 10', 'bug 20']);
    assert.match(reason, /^3 of 23: the first tenth, because the history is not there/);
  });

  test('an empty BUGS is none', () => {
    assert.deepEqual(namesOf(choose(bugs, '', change(4)).bugs), ['bug 4', 'bug 14']);
  });

  test('BUGS=all runs all of them', () => {
    assert.deepEqual(namesOf(choose(bugs, 'all', change(4)).bugs), namesOf(bugs));
  });

  test('another BUGS runs those that have it in their names, and fails where there are none', () => {
    assert.deepEqual(namesOf(choose(bugs, 'g 2', change(4)).bugs), ['bug 2', 'bug 20', 'bug 21', 'bug 22']);
    assert.throws(() => choose(bugs, 'misspelt', change(4)), /no planted bug has "misspelt" in its name/);
  });
});
