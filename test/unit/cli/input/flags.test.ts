import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { cpu, limit, memory, paths } from '../../../../cli/input/flags.ts';

describe('the value of a flag', () => {
  test('of CPU is a number of cores', () => {
    for (const text of ['2', '0.5', '500m']) assert.equal(cpu(text), text);
    for (const text of ['0', '0m', '2Gi', '-1', 'two', '']) assert.throws(() => cpu(text), /number of cores/, text);
  });
  test('of memory has a unit', () => {
    for (const text of ['512Mi', '2G', '1048576']) assert.equal(memory(text), text);
    for (const text of ['', '512MB', '-1Gi', '100m']) assert.throws(() => memory(text), /with a unit/, text);
    for (const text of ['512', '2k']) assert.throws(() => memory(text), /add a unit, for example 512Mi/, text);
  });
  test('of paths is no --, which the flag takes where no path is given', () => {
    assert.deepEqual(paths('b', paths('a')), ['a', 'b']);
    assert.throws(() => paths('--'), /needs a file or folder before the --/);
  });
  test('of a limit may be 0', () => {
    assert.deepEqual([limit('0'), limit('0s'), limit('1m30s')], [0, 0, 90_000]);
    for (const text of ['1', '-1s', '']) assert.throws(() => limit(text), /is not a duration/, text);
  });
});
