import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Measured, Unmeasured } from '../../bench/judge.ts';
import { joined, type Peer, range, spread, targetTable } from '../../bench/table.ts';
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

  test('says of a floor without samples why there are none', () => {
    const why = 'no checkout: AGENT_SANDBOX=/path';
    const [, floor, , figure, verdict] = table([{ id: 'burst', values: [900], absent: why }]).get('burst') ?? [];
    assert.deepEqual([floor, figure], ['agent-sandbox', '900 ms [900 … 900] (n 1)']);
    assert.equal(verdict, 'no verdict: agent-sandbox not measured (no checkout: AGENT_SANDBOX=/path)');
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

describe('measurements of agent-sandbox', () => {
  const burst = { burst: { values: [1], note: 'burst' } };
  const cold = { cold: { values: [2], note: 'cold' } };
  const cases: [string, Peer, Peer, Peer][] = [
    ['of two sections stand together', burst, cold, { ...burst, ...cold }],
    ['stay when a later section has none', burst, 'no checkout', burst],
    ['take the place of the reason why there were none', 'not measured', cold, cold],
    ['are absent for the last reason', 'not measured', 'no checkout', 'no checkout'],
  ];
  for (const [what, a, b, expected] of cases) test(what, () => assert.deepEqual(joined(a, b), expected));
});

describe('a range', () => {
  test('is the smallest and the largest value', () => assert.equal(range([29, 9, 30]), '9 to 30'));
  test('of equal values is that value', () => assert.equal(range([30, 30]), '30'));
});
