import assert from 'node:assert/strict';
import { test } from 'vitest';
import { restOfLog } from '../../../../cli/follow/rest.ts';
import { eventLine } from '../../../../core/pod-log/agent-events.ts';

const event = (seq: number) => eventLine({ seq, turn: 'a', at: 't', event: seq }).trimEnd();

test('the rest of a turn’s log is what comes after the last printed line', () => {
  assert.deepEqual(restOfLog(['a', 'b'], ['a', 'b', 'c', 'd']), ['c', 'd']);
  assert.deepEqual(restOfLog(['of the turn before', 'a'], ['a', 'b']), ['b']);
  assert.deepEqual(restOfLog(['b', 'c'], ['a', 'b', 'c', 'd']), ['d'], 'the first line was missed');
  assert.deepEqual(restOfLog(['a', 'b'], ['a', 'b']), []);
  assert.deepEqual(restOfLog(['x', 'a'], ['a', 'x', 'a', 'b']), ['b'], 'the longest match counts');
});

test('all of a log that was not followed is left', () => {
  assert.deepEqual(restOfLog([], ['a', 'b']), ['a', 'b']);
  assert.deepEqual(restOfLog(['of the turn before'], ['a', 'b']), ['a', 'b']);
});

test('events are the same by their number', () => {
  assert.deepEqual(restOfLog(['a', '[berth event] 1'], ['a', event(1), 'b', event(2)]), ['b', event(2)]);
});
