import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { edit } from '../../sim/bugs/edits.ts';
import { readFound, unmatched } from '../../sim/bugs/found.ts';
import { bugs } from '../../sim/bugs/list.ts';
import { CHECKOUT, rangesOf } from '../../sim/bugs/plant.ts';

const names = bugs.map(({ name }) => name);

describe('planted bugs', () => {
  test('every edit of every bug fits the source', () => {
    const read = (file: string) => readFileSync(join(CHECKOUT, file), 'utf8');
    assert.deepEqual(
      bugs.flatMap((bug) => edit(bug, read).misfits),
      [],
    );
  });

  test('every bug has a name of its own and a seed that finds it, and every seed has its bug', () => {
    assert.deepEqual(
      names.filter((name, i) => names.indexOf(name) !== i),
      [],
    );
    assert.deepEqual(unmatched(names, readFound()), []);
  });

  test('a bug without a seed is named with the command that finds one, and so is a seed without a bug', () => {
    assert.deepEqual(unmatched(['kept', 'new'], { kept: 3, gone: 4 }), [
      'found.json has no seed of "new": run make sim-seeds BUGS=\'new\'',
      'found.json has a seed of "gone", which is no planted bug: run make sim-seeds',
    ]);
  });
});

describe('edits of a bug', () => {
  const edited = (...edits: { file: string; find: string; replace: string }[]) =>
    edit({ name: 'a bug', edits }, (file) => `${file}: one two two`);

  test('are made one after the other, also in one file', () => {
    const { files, misfits } = edited(
      { file: 'a.ts', find: 'one', replace: 'three $& four' },
      { file: 'b.ts', find: 'one', replace: 'five' },
      { file: 'a.ts', find: 'three', replace: 'six' },
    );
    assert.deepEqual(misfits, []);
    assert.deepEqual(
      [...files],
      [
        ['a.ts', 'a.ts: six $& four two two'],
        ['b.ts', 'b.ts: five two two'],
      ],
    );
  });

  test('that do not fit are all named', () => {
    const { files, misfits } = edited(
      { file: 'a.ts', find: 'two', replace: 'three' },
      { file: 'a.ts', find: 'one', replace: 'four' },
      { file: 'b.ts', find: 'five', replace: 'six' },
    );
    assert.deepEqual(misfits, [
      '"a bug": what is to be replaced occurs 2 times in a.ts: two',
      '"a bug": what is to be replaced occurs 0 times in b.ts: five',
    ]);
    assert.deepEqual([...files], [['a.ts', 'a.ts: four two two']]);
  });
});

describe('seeds of a hunt', () => {
  test('are those from the recorded one on, then the first ones, none of them twice', () => {
    assert.deepEqual(rangesOf(7, 20), [
      { from: 7, count: 20 },
      { from: 1, count: 6 },
    ]);
    assert.deepEqual(rangesOf(300, 20), [
      { from: 300, count: 20 },
      { from: 1, count: 20 },
    ]);
  });

  test('are the first ones where none is recorded', () => {
    assert.deepEqual(rangesOf(undefined, 20), [{ from: 1, count: 20 }]);
    assert.deepEqual(rangesOf(1, 20), [{ from: 1, count: 20 }]);
  });
});
