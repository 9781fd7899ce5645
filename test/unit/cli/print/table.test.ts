import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { TableWriter, table } from '../../../../cli/print/table.ts';

const plain = (columns: number) => ({ columns, hasColour: false });
const LONG = 'A reason that says at length what happened, where, and what to do about it.';

describe('a table', () => {
  test('is as wide as its cells where stdout is no terminal, without colour', () => {
    assert.equal(
      table([
        ['NAME', 'PHASE', 'WHY'],
        ['notes', 'Failed', LONG],
      ]),
      `NAME    PHASE    WHY\nnotes   Failed   ${LONG}\n`,
    );
  });
  test('fits the terminal: the widest column gives way, names never', () => {
    const rows = [
      ['NAME', 'PHASE', 'WHY'],
      ['a-name-of-twenty-chars', 'Ready', LONG],
    ];
    const lines = table(rows, { terminal: plain(60) }).split('\n');
    for (const line of lines) assert.ok([...line].length <= 60, line);
    assert.match(lines[1] ?? '', /^a-name-of-twenty-chars {3}Ready {3}A reason .*…$/);
    assert.match(table(rows, { terminal: plain(10) }), /^a-name-of-twenty-chars /m);
  });
  test('continues its last column on further lines where it is asked to', () => {
    const rows = [
      ['CONDITION', 'MESSAGE'],
      ['Ready', LONG],
    ];
    const [, ...lines] = table(rows, { terminal: plain(50), wraps: true })
      .trimEnd()
      .split('\n');
    assert.ok(lines.length > 1);
    for (const line of lines) assert.ok(line.length <= 50, line);
    assert.equal(lines.map((line) => line.slice('CONDITION   '.length)).join(' '), LONG);
  });
  test('has colours by phase on a terminal that wants them, which do not count as width', () => {
    const rows = [
      ['PHASE', 'NAME'],
      ['Failed', 'a'],
      ['Unknown', 'Failed'],
    ];
    assert.equal(
      table(rows, { terminal: { columns: 80, hasColour: true } }),
      'PHASE     NAME\n\x1b[31mFailed\x1b[0m    a\nUnknown   Failed\n',
    );
    assert.ok(!table(rows, { terminal: plain(80) }).includes('\x1b'));
  });
  test('keeps a row on one line and no control character', () => {
    assert.equal(
      table([
        ['WHY', 'B'],
        ['two\nlines', '\x1b[2Jx'],
      ]),
      'WHY         B\ntwo lines   \\x1b[2Jx\n',
    );
  });
  test('whose rows come over time only becomes wider', () => {
    const writer = new TableWriter(['NAME', 'AGE']);
    assert.equal(
      writer.add([
        ['NAME', 'AGE'],
        ['longer', '1s'],
      ]),
      'NAME     AGE\nlonger   1s\n',
    );
    assert.equal(writer.add([['a', '2s']]), 'a        2s\n');
    assert.equal(writer.add([['the-longest', '3s']]), 'the-longest   3s\n');
  });
});
