import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { aClass, aSession, aTurn, aWorld } from '../../../support/world.ts';

describe('a waiting turn that cannot run', () => {
  const world = (first: Parameters<typeof aTurn>[0]) =>
    aWorld({
      session: aSession({ spec: { suspend: true } }),
      class: aClass({ maxTimeouts: { turn: '1m' } }),
      turns: [aTurn({ name: 'first', age: 9, ...first }), aTurn({ name: 'second', age: 1 })],
    });
  const writes = (first: Parameters<typeof aTurn>[0]) =>
    decide(world(first)).actions.flatMap((action) =>
      action.do === 'WriteTurn' ? [[action.turn.metadata.name, action.status.phase, action.status.index]] : [],
    );

  test('is written once, as ended, with the index that comes before that of the next', () => {
    const queued = ['second', 'Queued', 2];
    assert.deepEqual(writes({ spec: { cancel: true } }), [['first', 'Cancelled', 1], queued]);
    assert.deepEqual(writes({ spec: { timeout: '2m' } }), [['first', 'Failed', 1], queued]);
  });
});
