import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { median, medianInterval, percentile } from '../../bench/statistics.ts';

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

describe('a percentile', () => {
  const cases: [string, number[], number, number][] = [
    ['is a value of the series, not one between two', [1, 2, 3, 10], 0.5, 2],
    ['does not depend on the order of the samples', [10, 3, 1, 2], 0.75, 3],
    ['of one value is that value', [7], 0.99, 7],
    ['compares numbers as numbers', [9, 10, 100], 0.5, 10],
    ['of 99 percent is the largest of few values', upTo(50), 0.99, 50],
    ['of 99 percent leaves five of 500 values above it', upTo(500), 0.99, 495],
  ];
  for (const [what, values, share, expected] of cases) {
    test(what, () => assert.equal(percentile(values, share), expected));
  }

  test('of no value is NaN', () => assert.ok(Number.isNaN(percentile([], 0.5))));

  test('leaves the series as it was', () => {
    const values = [3, 1, 2];
    median(values);
    assert.deepEqual(values, [3, 1, 2]);
  });
});

describe('the interval of a median', () => {
  const cases: [number, number, number][] = [
    // Ranks n/2 − 0.98 √n, rounded down, and 1 + n/2 + 0.98 √n, rounded up.
    [30, 9, 22],
    [100, 40, 61],
    [1, 1, 1],
    [4, 1, 4],
  ];
  for (const [n, low, high] of cases) {
    test(`of ${n} values is from the one of rank ${low} to the one of rank ${high}`, () => {
      assert.deepEqual(medianInterval(upTo(n)), { low, high });
    });
  }

  test('contains the median of the population in 95 of 100 series', () => {
    // Series of equally distributed values from a generator with a fixed seed.
    let word = 1;
    const uniform = () => {
      word = (Math.imul(word, 1_664_525) + 1_013_904_223) >>> 0;
      return word / 2 ** 32;
    };
    const hits = upTo(1000).filter(() => {
      const { low, high } = medianInterval(Array.from({ length: 31 }, uniform));
      return low <= 0.5 && 0.5 <= high;
    }).length;
    assert.ok(hits >= 930 && hits < 1000, `${hits} of 1000`);
  });
});
