import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../../controller/decide/decide.ts';
import type { World } from '../../../../../controller/observed/world.ts';
import type { TurnStatus } from '../../../../../core/resources/turn.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  written,
} from '../../../../support/world.ts';

/** Created a minute ago. */
const session = (lifetime: string, status: World['session']['status'] = RUNNING_STATUS) =>
  aSession({ spec: { timeouts: { lifetime } }, ...(status ? { status } : {}) });
const over = { session: session('50s'), pod: aPod(), link: aLink() };
const finishedStatus = decide(aWorld(over)).status;

describe('a session past its lifetime', () => {
  test('is finished and says why, then gives up its pod', () => {
    const decision = decide(aWorld(over));
    assert.deepEqual(decision.actions, []);
    assert.equal(decision.status.phase, 'Finished');
    const finished = decision.status.conditions?.find(({ type }) => type === 'Finished');
    assert.deepEqual([finished?.status, finished?.reason], ['True', 'LifetimeExceeded']);
    assert.deepEqual(does({ ...over, session: session('50s', decision.status) }), ['DeletePod']);
  });
  test('is not over before, and is reconciled in time', () => {
    const decision = decide(aWorld({ ...over, session: session('70s') }));
    assert.equal(decision.status.phase, 'Ready');
    assert.equal(decision.wakeAt, NOW + 10_000);
  });
  test('takes its lifetime from the class, and none that is longer than the class allows', () => {
    const plain = aSession({ status: RUNNING_STATUS });
    assert.equal(decide(aWorld({ ...over, session: plain })).status.phase, 'Ready');
    for (const spec of [{ timeouts: { lifetime: '50s' } }, { maxTimeouts: { lifetime: '50s' } }]) {
      assert.equal(decide(aWorld({ ...over, session: plain, class: aClass(spec) })).status.phase, 'Finished');
    }
  });
  test('has its running turn stopped first', () => {
    const turns = [runningTurn('a')];
    const sent = { active: 't-a', sent: new Set(['t-a']), fresh: false };
    const stops = decide(aWorld({ ...over, turns, link: aLink(sent) }));
    assert.deepEqual(stops.actions, [{ do: 'CancelTurn', turn: 't-a', why: 'LifetimeExceeded' }]);
    assert.notEqual(stops.status.phase, 'Finished');
    const told = (ago: number) => {
      const cancelSent = new Map([['t-a', { at: NOW - ago, why: 'LifetimeExceeded' as const }]]);
      return aWorld({ ...over, turns, link: aLink({ ...sent, cancelSent }) });
    };
    assert.deepEqual(decide(told(1000)).actions, []);
    const late = decide(told(21_000));
    assert.deepEqual(
      late.actions.map((action) => (action.do === 'WriteTurn' ? action.status.error?.code : action.do)),
      ['DeletePod', 'LifetimeExceeded'],
    );
  });
  test('ends its queued turns and those that wait for an approval, and takes no new ones', () => {
    const waiting = runningTurn('a', { status: { phase: 'AwaitingApproval' } as TurnStatus });
    for (const turn of [aTurn(), waiting]) {
      const [ended] = written(decide(aWorld({ ...over, turns: [turn] })).actions);
      assert.equal(ended?.error?.code, 'LifetimeExceeded');
    }
    const { podName: _, podUID: __, ...gone } = finishedStatus;
    const later = decide(aWorld({ session: session('50s', gone), turns: [aTurn()] }));
    assert.equal(written(later.actions)[0]?.error?.code, 'LifetimeExceeded');
    assert.equal(later.admission, undefined);
  });
  test('stays finished when the lifetime is raised', () => {
    assert.equal(decide(aWorld({ ...over, session: session('10h', finishedStatus) })).status.phase, 'Finished');
  });
  test('releases a slot for which it has no pod yet', () => {
    const { podUID: _, ...owned } = finishedStatus;
    assert.equal(decide(aWorld({ session: session('50s', owned) })).status.podName, undefined);
  });
  test('keeps the reason of a run that ended before', () => {
    const status = { ...RUNNING_STATUS, lastTurn: { name: 'a', index: 1, phase: 'Succeeded' as const } };
    const one = aSession({ spec: { turns: 'One', timeouts: { lifetime: '50s' } }, status });
    const finished = decide(aWorld({ ...over, session: one })).status.conditions?.find(
      ({ type }) => type === 'Finished',
    );
    assert.equal(finished?.reason, 'RunSucceeded');
  });
  test('is not bound to a turn that its runner was never given', () => {
    const turns = [runningTurn('a', { status: { podUID: POD_UID } })];
    const [ended] = written(decide(aWorld({ ...over, turns })).actions);
    assert.equal(ended?.error?.code, 'LifetimeExceeded');
  });
});
