import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Counting, countsWaitMs } from '../../../controller/decide/counting.ts';
import { turns } from '../../../core/resources/kinds.ts';
import type { SessionStatus } from '../../../core/resources/session.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aTurn } from '../../support/world.ts';

const lastTurn = (index: number) => ({ name: `t-${index}`, index, phase: 'Succeeded' as const });
const before: SessionStatus = {
  phase: 'Ready',
  podName: 'p',
  turns: { total: 1, succeeded: 1, failed: 0 },
  lastTurn: lastTurn(1),
  lastActiveAt: '2026-01-01T00:00:00.000Z',
};
const next: SessionStatus = {
  ...before,
  turns: { total: 2, succeeded: 2, failed: 0 },
  lastTurn: lastTurn(2),
  lastActiveAt: '2026-01-01T00:00:01.000Z',
};
const turn = aTurn({ name: 't-2', status: { index: 2, phase: 'Succeeded' } });
const counting: Counting = {
  before,
  next,
  turns: [turn],
  present: new Set([turn.metadata.uid]),
  countedAt: 5_000,
  monotonic: 5_300,
};

describe('a status that only counts turns', () => {
  test('waits until a second after the last one', () => {
    assert.equal(countsWaitMs(counting), 700);
    assert.equal(countsWaitMs({ ...counting, monotonic: 6_000 }), 0);
  });

  test('is written at once by a leader that has counted none before', () => {
    assert.equal(countsWaitMs({ ...counting, countedAt: undefined }), 0);
  });

  test('is written at once when a turn that it counts has been deleted', () => {
    assert.equal(countsWaitMs({ ...counting, present: new Set() }), 0);
  });

  const others: Record<string, SessionStatus> = {
    'another state': { ...next, state: { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 2, inline: '' } },
    'another phase': { ...next, phase: 'Suspending' },
    'no pod any more': { ...next, podName: undefined },
    'a condition': { ...next, conditions: [] },
  };
  for (const [what, status] of Object.entries(others)) {
    test(`is written at once when it tells ${what} too`, () => {
      assert.equal(countsWaitMs({ ...counting, next: status }), 0);
    });
  }

  test('does not delay activity that comes without a turn', () => {
    const active = { ...before, lastActiveAt: next.lastActiveAt as string };
    assert.equal(countsWaitMs({ ...counting, next: active }), 0);
  });
});

test('a turn that is deleted before its session has counted it is counted all the same', async () => {
  const world = new QuietWorld();
  await world.start();
  const session = await world.session('notes');
  await world.turn(session, 'first', { ms: 10, output: 1, state: 100 });
  await world.sessionUntil('notes', ({ status }) => status?.turns?.total === 1);
  await world.turn(session, 'second', { ms: 10, output: 1 });
  await world.server.admin.delete(turns, { namespace: 'team', name: 'second' });
  world.calls = [];
  const counted = await world.sessionUntil('notes', ({ status }) => status?.turns?.total === 2);
  assert.equal(counted.status?.lastTurn?.index, 2);
});
