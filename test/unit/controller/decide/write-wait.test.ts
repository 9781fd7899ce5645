import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type WriteWait, writeWaitMs } from '../../../../controller/decide/write-wait.ts';
import { turns } from '../../../../core/resources/kinds.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
import { aTurn } from '../../../support/world.ts';

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
const counting: WriteWait = {
  before,
  next,
  counted: [turn],
  present: new Set([turn.metadata.uid]),
  gaveAt: undefined,
  countedAt: 5_000,
  monotonic: 5_300,
  boundMsAgo: undefined,
};

describe('a status that only counts turns', () => {
  test('waits until a second after the last one', () => {
    assert.equal(writeWaitMs(counting), 700);
    assert.equal(writeWaitMs({ ...counting, monotonic: 6_000 }), 0);
  });

  test('is written at once by a leader that has counted none before', () => {
    assert.equal(writeWaitMs({ ...counting, countedAt: undefined }), 0);
  });

  test('is written at once when a turn that it counts has been deleted', () => {
    assert.equal(writeWaitMs({ ...counting, present: new Set() }), 0);
  });

  const others: Record<string, SessionStatus> = {
    'another state': { ...next, state: { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 2, inline: '' } },
    'another phase': { ...next, phase: 'Suspending' },
    'no pod any more': { ...next, podName: undefined },
    'a condition': { ...next, conditions: [] },
  };
  for (const [what, status] of Object.entries(others)) {
    test(`is written at once when it tells ${what} too`, () => {
      assert.equal(writeWaitMs({ ...counting, next: status }), 0);
    });
  }

  test('does not delay activity that comes without a turn', () => {
    const active = { ...before, lastActiveAt: next.lastActiveAt as string };
    assert.equal(writeWaitMs({ ...counting, next: active, counted: [] }), 0);
  });
});

describe('a status that is decided as the runner is given a turn', () => {
  const starting: SessionStatus = { phase: 'Starting', podName: 'p', podUID: 'u', incarnation: 1, runnerVersion: '1' };
  const ready: SessionStatus = { ...starting, phase: 'Ready', runnerVersion: '2', conditions: [], reason: 'Ready' };
  const given: WriteWait = { ...counting, before: starting, next: ready, counted: [], gaveAt: 5_250 };

  test('waits a little, as the end of a short turn is written with it', () => {
    assert.equal(writeWaitMs(given), 200);
    assert.equal(writeWaitMs({ ...given, monotonic: 5_500 }), 0);
  });
  test('is written at once without a turn', () => {
    assert.equal(writeWaitMs({ ...given, gaveAt: undefined }), 0);
  });
  test('is written at once when it says more than that the runner is ready', () => {
    assert.equal(writeWaitMs({ ...given, next: { ...ready, phase: 'Suspending' } }), 0);
    assert.equal(writeWaitMs({ ...given, next: { ...ready, podUID: 'other' } }), 0);
    const state = { digest: 'd', keyId: 'k', bytes: 1, incarnation: 1, seq: 2, inline: '' };
    assert.equal(writeWaitMs({ ...given, next: { ...ready, state } }), 0);
  });
});

describe('the version of a runner', () => {
  const starting: SessionStatus = { phase: 'Starting', podName: 'p', podUID: 'u', incarnation: 1 };
  const known: WriteWait = {
    ...counting,
    before: starting,
    next: { ...starting, runnerVersion: '1' },
    counted: [],
    boundMsAgo: 300,
  };

  test('is written with what is said once the runner is bound, or a second after its binding was sent', () => {
    assert.equal(writeWaitMs(known), 700);
    assert.equal(writeWaitMs({ ...known, boundMsAgo: 1_000 }), 0);
    assert.equal(writeWaitMs({ ...known, boundMsAgo: -60_000 }), 1_000, 'the clock was set back');
  });
  test('is written at once where no binding was sent, and with all that is said beside it', () => {
    assert.equal(writeWaitMs({ ...known, boundMsAgo: undefined }), 0);
    assert.equal(writeWaitMs({ ...known, next: { ...known.next, conditions: [] } }), 0);
    assert.equal(writeWaitMs({ ...known, next: { ...known.next, phase: 'Ready' } }), 0);
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
