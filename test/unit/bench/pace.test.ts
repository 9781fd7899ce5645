import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { calls, halves, paced } from '../../bench/pace.ts';
import { eventually } from '../../support/eventually.ts';

describe('a pace', () => {
  test('has as many calls as its time holds, the last one whole', () => {
    assert.equal(calls({ perSecond: 3.26, seconds: 20 }), 65);
    assert.equal(calls({ perSecond: 0.04, seconds: 20 }), 0);
  });

  test('begins a call whether the one before has ended or not, and tells the results in the order of the calls', async () => {
    const ends: (() => void)[] = [];
    const results = paced({ perSecond: 1000, seconds: 0.003 }, async (index) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return index;
    });
    await eventually(() => ends.length === 3, { what: 'three calls have begun', timeoutMs: 10_000 });
    for (const end of ends.toReversed()) end();
    assert.deepEqual(await results, [0, 1, 2]);
  });

  test('makes its other calls although one has failed, and then rejects', async () => {
    const begun: number[] = [];
    const work = async (index: number) => {
      begun.push(index);
      if (index === 0) throw new Error('the first failed');
    };
    await assert.rejects(paced({ perSecond: 100, seconds: 0.03 }, work), /the first failed/);
    assert.deepEqual(begun, [0, 1, 2]);
  });
});

describe('halves of a series', () => {
  test('are judged by their medians, the second in relation to the first', () => {
    assert.deepEqual(halves([10, 9999, 10, 30, 1, 9999]), { first: 10, second: 30, ratio: 3 });
  });

  test('are in the order of the series, not of the values', () => {
    assert.equal(halves([40, 40, 10, 10]).ratio, 0.25);
  });

  test('of an odd number leave the one more to the first', () => {
    assert.deepEqual(halves([1, 5, 5, 10, 10]), { first: 5, second: 10, ratio: 2 });
  });
});
