import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Measured, Unmeasured } from '../../bench/judge.ts';
import { type Peer, spread, targetTable } from '../../bench/table.ts';
import { TARGETS } from '../../bench/targets.ts';

/** Cells of each row by the row's target. */
function table(measured: (Measured | Unmeasured)[], peer: Peer = 'no checkout', short = false) {
  const lines = targetTable(TARGETS, measured, peer, short).split('\n');
  const rows = lines.slice(2).map((line) => line.slice(2, -2).split(' | '));
  return new Map(TARGETS.map(({ id }, i) => [id, rows[i] ?? []]));
}

describe('the table of targets', () => {
  test('has a row for every target, in their order, whatever was measured', () => {
    const rows = [...table([]).values()];
    assert.deepEqual(
      rows.map(([what]) => what),
      TARGETS.map(({ what }) => what),
    );
  });

  test('gives no figure for what no run measures and says so', () => {
    const [, , , figure, verdict] = table([]).get('burst') ?? [];
    assert.deepEqual([figure, verdict], ['', 'not measured: make bench has a pool of one pod']);
  });

  test('judges a row as soon as it is measured', () => {
    const floors = { 'F-write': [10], 'F-attach': [1], 'F-spawn': [4] };
    const [, floor, , figure, verdict] = table([{ id: 'warm', values: [31], floors }]).get('warm') ?? [];
    assert.equal(floor, '2 F-write + F-attach + F-spawn = 25.0 ms');
    assert.match(figure ?? '', /^31\.0 ms \[31\.0 … 31\.0\], p99 31\.0 \(n 1\)<br>× 1\.24/);
    assert.match(verdict ?? '', /^met: .*; no verdict on p99 \(n 1, 500 needed\)$/);
  });

  test('says of a row without samples that it was left out, failed, or why', () => {
    const rows = table([{ id: 'demo', why: 'failed: no npm' }]);
    assert.equal(rows.get('demo')?.[4], 'failed: no npm');
    assert.equal(rows.get('cli-list')?.[4], 'not measured: left out of this run');
  });

  test('shows what agent-sandbox took, and says where it was not measured', () => {
    const peer = { cold: { values: [1000], note: 'claim → Ready' } };
    const cells = (given: Peer) => ['cold', 'warm', 'turn'].map((id) => table([], given).get(id as 'cold')?.[5]);
    assert.deepEqual(cells(peer), ['1000 ms [1000 … 1000] (n 1)<br>claim → Ready', 'not measured', '–']);
    assert.deepEqual(cells('no checkout'), ['no checkout', 'no checkout', '–']);
  });

  test('keeps a pipe in a text inside its cell', () => {
    const text = targetTable(TARGETS, [{ id: 'demo', why: 'failed: a | b' }], '', false);
    assert.match(text, /failed: a \\\| b \| – \|$/m);
  });
});

describe('a spread', () => {
  test('is the median between its quartiles with the number of samples', () => {
    assert.equal(spread([4, 1, 3, 2], 'ms'), '2.00 ms [1.00 … 3.00] (n 4)');
  });

  test('has no unit for a ratio', () => assert.equal(spread([2], '×', true), '2.00 [2.00 … 2.00], p99 2.00 (n 1)'));
});
