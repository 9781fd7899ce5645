import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { named } from '../../sim/bugs/named.ts';

const bugs = ['bug 1', 'bug 2', 'bug 21'].map((name) => ({ name }));

describe('planted bugs of a run', () => {
  test.for([undefined, ''])('are all without a part of a name (%o)', (part) => {
    assert.deepEqual(named(bugs, part), bugs);
  });

  test('are those that have the part in their names', () => {
    assert.deepEqual(named(bugs, 'g 2'), bugs.slice(1));
  });

  test('fail where no name has it', () => {
    assert.throws(() => named(bugs, 'misspelt'), /no planted bug has "misspelt" in its name/);
  });
});
