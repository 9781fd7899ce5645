import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { TtlCache } from '../../../../api/auth/ttl-cache.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('answers that are good for a short time', () => {
  const make = (max = 100) => {
    const clock = new VirtualClock();
    let asked = 0;
    const cache = new TtlCache<number>(clock, { ttlMs: 1000, maxEntries: max });
    const get = (key: string) => cache.get(key, async () => ++asked);
    return { clock, cache, get };
  };

  test('an answer serves all callers within its time, and none after it', async () => {
    const { clock, get } = make();
    assert.deepEqual(await Promise.all([get('a'), get('a')]), [1, 1]);
    await clock.advance(999);
    assert.equal(await get('a'), 1);
    await clock.advance(1);
    assert.equal(await get('a'), 2);
  });

  test('an answer that is good for a shorter time serves no longer than that', async () => {
    const clock = new VirtualClock();
    const answers = [1, 2, 3];
    const ttlOf = (answer: number) => (answer === 1 ? 100 : 1000);
    const cache = new TtlCache<number>(clock, { ttlMs: 1000, maxEntries: 9, ttlOf });
    const get = () => cache.get('a', async () => answers.shift() as number);
    assert.equal(await get(), 1);
    await clock.advance(99);
    assert.equal(await get(), 1);
    await clock.advance(1);
    assert.equal(await get(), 2);
    await clock.advance(999);
    assert.equal(await get(), 2);
  });

  test('an answer to one is none to another', async () => {
    const { get } = make();
    assert.deepEqual([await get('a'), await get('b')], [1, 2]);
  });

  test('a failure is told to those who asked and not kept', async () => {
    const { cache, get } = make();
    await assert.rejects(cache.get('a', () => Promise.reject(new Error('no'))));
    assert.equal(await get('a'), 1);
  });

  test('never more answers are kept than allowed, the oldest go first', async () => {
    const { get } = make(2);
    await get('a');
    await get('b');
    await get('c');
    assert.equal(await get('c'), 3);
    assert.equal(await get('b'), 2);
    assert.equal(await get('a'), 4);
  });
});
