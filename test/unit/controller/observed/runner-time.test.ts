import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { inClusterTime } from '../../../../controller/observed/runner-time.ts';
import { aTurn, NOW, runningTurn } from '../../../support/world.ts';

const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const given = (seconds: number, status = {}) => {
  const condition = {
    type: 'Running',
    status: 'True' as const,
    reason: 'Running',
    message: '',
    lastTransitionTime: at(seconds),
  };
  return runningTurn('a', { status: { conditions: [condition], ...status } });
};
const told = (started: number, finished: number) => ({ startedAt: at(started), finishedAt: at(finished) });

describe('the time of a turn', () => {
  test('is what its runner says, where that can be', () => {
    assert.deepEqual(inClusterTime(given(-60), told(-59, -20), NOW), told(-59, -20));
    assert.deepEqual(inClusterTime(given(-60), told(-61, 1), NOW), told(-61, 1));
  });
  for (const hours of [-1, 1]) {
    test(`is told by our clock where the runner's is ${hours} h off, and took as long`, () => {
      const skew = hours * 3600;
      assert.deepEqual(inClusterTime(given(-60), told(skew - 50, skew - 10), NOW), told(-40, 0));
    });
  }
  test('is never before it was given to the runner', () => {
    assert.deepEqual(inClusterTime(given(-5), told(-3600, -1), NOW), told(-5, 0));
  });
  test('has an end that is not before its start', () => {
    assert.deepEqual(inClusterTime(given(-60), told(86_400, -1), NOW), told(0, 0));
  });
  test('may be before its decision', () => {
    const approval = { id: 'r', prompt: 'p', since: at(-400) } as never;
    const turn = { ...given(-5, { approval }) };
    turn.metadata = { ...turn.metadata, creationTimestamp: at(-900) };
    assert.deepEqual(inClusterTime(turn, told(-800, -1), NOW), told(-800, -1));
  });
  test('stays unknown where nobody said it', () => {
    assert.deepEqual(inClusterTime(aTurn(), {}, NOW), {});
  });
});
