import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { firstLines, lastLines } from '../../../../cli/print/excerpt.ts';

const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `${from + i}`).join('\n');

describe('an excerpt', () => {
  test('has twenty lines, says how many are left out and what prints all', () => {
    assert.equal(firstLines(`${lines(1, 5000)}\n`, 'all'), `${lines(1, 20)}\n[4980 lines more; all: all]`);
    assert.equal(lastLines(`${lines(1, 5000)}\n`, 'all'), `[4980 lines before these; all: all]\n${lines(4981, 5000)}`);
    assert.match(lastLines(lines(1, 21), 'all'), /^\[1 line before these; all: all\]\n2\n/);
  });

  test('of a text that has room is the text', () => {
    for (const text of ['', 'a', `${lines(1, 20)}\n`, 'x'.repeat(4096), 'a  \n\n']) {
      assert.equal(firstLines(text, 'all'), text);
      assert.equal(lastLines(text, 'all'), text);
    }
  });

  test('has at most 4 KiB, also of one line, and no half of a character', () => {
    const long = 'é'.repeat(1000);
    assert.equal(firstLines([long, long, long].join('\n'), 'all'), `${long}\n${long}\n[1 line more; all: all]`);
    const one = `a${'é'.repeat(3000)}b`;
    assert.equal(firstLines(one, 'all'), `a${'é'.repeat(2047)}\n[1906 bytes more; all: all]`);
    assert.equal(lastLines(one, 'all'), `[1906 bytes before these; all: all]\n${'é'.repeat(2047)}b`);
  });
});
