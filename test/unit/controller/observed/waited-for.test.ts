import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { isWaitedFor } from '../../../../controller/observed/urgency.ts';
import type { CachedSession, CachedTurn } from '../../../../controller/observed/world.ts';
import { aSession, aTurn, RUNNING_STATUS, runningTurn } from '../../../support/world.ts';

const READY = aSession({ status: RUNNING_STATUS });
const ENDED = aTurn({ status: { index: 1, phase: 'Succeeded', finishedAt: '2026-01-01T11:59:00Z' } });

const waits = (session: CachedSession, turns: CachedTurn[] = [ENDED], isPreempted = false) =>
  isWaitedFor(session, turns, { isPreempted });
const ready = (spec: Partial<CachedSession['spec']>, status: Partial<CachedSession['status']> = {}) =>
  aSession({ spec, status: { ...RUNNING_STATUS, ...status } });
const handled = (id: string, done: boolean) => ({ suspendHandled: { id, afterTurn: 1, done } });

describe('nobody waits for a session', () => {
  test('that is Ready and whose turns have ended', () => {
    assert.deepEqual([waits(READY), waits(READY, [])], [false, false]);
  });

  test('whose last restart or suspension that was asked for is done', () => {
    assert.equal(waits(ready({ restartRequest: 'r1' }, { restartRequest: 'r1' })), false);
    assert.equal(waits(ready({ suspendRequest: 's1' }, handled('s1', true))), false);
  });
});

describe('somebody waits for a session', () => {
  test.for([
    ['a turn that runs', runningTurn('now')],
    ['a turn that nothing has taken up yet', aTurn()],
    ['a turn that waits for an approval', runningTurn('asks', { status: { phase: 'AwaitingApproval' } })],
  ] as const)('with %s', ([, turn]) => {
    assert.equal(waits(READY, [ENDED, turn]), true);
  });

  test.for([
    ['is to be suspended', ready({ suspend: true })],
    ['was asked to suspend', ready({ suspendRequest: 's2' }, handled('s1', true))],
    ['is still to suspend as it was asked', ready({ suspendRequest: 's1' }, handled('s1', false))],
    ['was asked to restart', ready({ restartRequest: 'r2' }, { restartRequest: 'r1' })],
    ['is being deleted', aSession({ status: RUNNING_STATUS, deleting: true })],
    ['starts', ready({}, { phase: 'Starting' })],
    ['has no status yet', aSession()],
  ] as const)('that %s', ([, session]) => {
    assert.equal(waits(session), true);
  });

  test('whose slot another one waits for', () => {
    assert.equal(waits(READY, [ENDED], true), true);
  });
});
