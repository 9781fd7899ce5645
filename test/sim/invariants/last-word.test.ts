import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { SimContainer } from '../cluster/container.ts';
import type { ControllerCall } from '../observer.ts';
import { LastWord } from './last-word.ts';

const call = (process: string, sentAt = 100) => ({ process, sentAt: () => sentAt }) as unknown as ControllerCall;
const container = (now: number, suspendedAt?: number) =>
  ({ podUID: 'pod', suspendedAt, process: { monotonic: () => now } }) as unknown as SimContainer;
const looked = (at: number) => ({ version: 1, at, held: false, wished: false });

/** The runner was told at 50 to take no more turns. `a` hears at `heardAt` what it said `agoMs` before. */
function told(heardAt: number, agoMs: number, onActivity = true): LastWord {
  const words = new LastWord();
  words.heard(container(heardAt), { process: 'a', agoMs, onActivity, frames: [] });
  return words;
}

describe('time up to which activity can be known', () => {
  test('activity that was asked for counts up to the answers', () => {
    assert.deepEqual(told(70, 5).of(call('a'), container(101, 50), looked(80), 0), { api: 80, runner: 65 });
  });

  test('and further where the caches have been shown more', () => {
    assert.equal(told(70, 5).of(call('a'), container(101, 50), looked(80), 90).api, 90);
  });

  test('activity that was not asked for counts up to the call', () => {
    const all = { api: 100, runner: 100 };
    assert.deepEqual(new LastWord().of(call('a'), container(101, 50), undefined, 0), all);
    assert.deepEqual(told(70, 5).of(call('a'), container(101), looked(80), 0), all);
  });

  test('nor do answers to an earlier question, to somebody else, to another question, or after the call', () => {
    assert.equal(told(70, 25).of(call('a'), container(101, 50), undefined, 0).runner, 100);
    assert.equal(told(70, 5).of(call('b'), container(101, 50), undefined, 0).runner, 100);
    assert.equal(told(70, 5, false).of(call('a'), container(101, 50), undefined, 0).runner, 100);
    assert.equal(told(101, 5).of(call('a'), container(101, 50), undefined, 0).runner, 100);
    assert.equal(told(70, 5).of(call('a'), container(101, 50), looked(40), 45).api, 100);
  });
});
