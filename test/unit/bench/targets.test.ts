import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { judgeBound, limitOf, type Measured, verdict } from '../../bench/judge.ts';
import { type Bound, boundText, TARGETS, type Target } from '../../bench/targets.ts';

const target = (id: string) => TARGETS.find((each) => each.id === id) as Target;
const many = (n: number, value: number) => Array.from({ length: n }, () => value);

describe('a bound as text', () => {
  const cases: [Bound, string][] = [
    [{ share: 0.5, plus: 6 }, 'p50 ≤ 6 s'],
    [{ share: 0.5, factor: 1.5, floors: { get: 1 } }, 'p50 ≤ 1.5 × get'],
    [{ share: 0.99, factor: 4, floors: { write: 2, attach: 1 } }, 'p99 ≤ 4 × (2 write + attach)'],
    [{ share: 0.5, factor: 1, floors: { turn: 1 }, plus: 20 }, 'p50 ≤ turn + 20 s'],
    [{ share: 0.5, factor: 0.6, floors: { 'patches ÷ writes': 1 }, atLeast: true }, 'p50 ≥ 0.6 × (patches ÷ writes)'],
  ];
  for (const [bound, text] of cases) test(`is "${text}"`, () => assert.equal(boundText(bound, 's'), text));
});

describe('a limit', () => {
  test('is the factor times the weighted medians of the floors, and the constant', () => {
    const bound: Bound = { share: 0.5, factor: 1.25, floors: { write: 2, attach: 1 }, plus: 3 };
    assert.equal(limitOf(bound, { write: [10, 10, 50], attach: [4] }), 1.25 * 24 + 3);
  });

  test('is unknown while a floor has no samples', () => {
    assert.equal(limitOf({ share: 0.5, floors: { write: 1, attach: 1 } }, { write: [1], attach: [] }), undefined);
  });
});

describe('the verdict on a bound', () => {
  const p50: Bound = { share: 0.5, factor: 1.25, floors: { floor: 1 } };
  const p99: Bound = { share: 0.99, factor: 4, floors: { floor: 1 } };
  const rate: Bound = { share: 0.5, factor: 0.6, floors: { floor: 1 }, atLeast: true };
  const floors = { floor: [100] };
  const cases: [string, Bound, number[], boolean, boolean | undefined][] = [
    ['is met at the limit', p50, [125], false, true],
    ['is missed above the limit', p50, [125.1], false, false],
    ['goes by the median, not by the mean', p50, [1, 1, 9999], false, true],
    ['is met above the limit where more is better', rate, [60], false, true],
    ['is missed below the limit where more is better', rate, [59.9], false, false],
    ['is given on a p99 of 500 samples', p99, many(500, 399), false, true],
    ['counts the slowest hundredth for a p99', p99, [...many(494, 1), ...many(6, 401)], false, false],
    ['is not given on a p99 of 499 samples', p99, many(499, 399), false, undefined],
    ['is not given on a p99 of a short run', p99, many(500, 399), true, undefined],
    ['is given on a p50 of a short run', p50, [126], true, false],
    ['is not given without samples', p50, [], false, undefined],
  ];
  for (const [what, bound, values, short, met] of cases) {
    test(what, () => assert.equal(judgeBound(bound, { id: 'turn', values, floors }, short).met, met));
  }

  test('names the floor that was not measured', () => {
    const { text } = judgeBound(p50, { id: 'turn', values: [1] }, false);
    assert.equal(text, 'no verdict: floor not measured');
  });
});

describe('the verdict on a row', () => {
  const floors = { 'F-container': [400], 'F-node': [40], 'F-write': [20], bare: [1000] };
  const cold = (value: number): Measured => ({ id: 'cold', values: [value], floors });

  test('is one word where all its bounds agree', () => {
    assert.equal(verdict(target('cold'), cold(500), false), 'met');
    assert.equal(verdict(target('cold'), cold(2000), false), 'missed');
  });

  test('tells its bounds apart where they do not', () => {
    const text = verdict(target('cold'), cold(700), false);
    assert.equal(text, 'missed: p50 ≤ 1.2 × (F-container + F-node + 2 F-write); met: p50 ≤ 0.9 × bare');
  });

  test('of what was not measured says why', () => {
    assert.equal(verdict(target('demo'), { id: 'demo', why: 'not measured: no npm' }, false), 'not measured: no npm');
  });
});

test('every target has an id of its own and at least one bound', () => {
  assert.equal(new Set(TARGETS.map(({ id }) => id)).size, TARGETS.length);
  for (const { id, bounds } of TARGETS) assert.ok(bounds.length > 0, id);
});
