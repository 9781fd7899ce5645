import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../../controller/decide/decide.ts';

import {
  aClass,
  aLink,
  aPod,
  aResult,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
  written,
} from '../../../../support/world.ts';

const session = aSession({ deleting: true, status: RUNNING_STATUS });
const { podUID: _, ...OWNED } = RUNNING_STATUS;
const bound = { session, pod: aPod(), link: aLink({ active: 't-a', sent: new Set(['t-a']) }) };
const ends = (world: WorldChange) =>
  written(decide(aWorld(world)).actions).map(({ phase, error, index }) => [phase, error?.code, index]);

/** Session as `kubectl delete --cascade=foreground` and finalizers of others leave it. */
describe('a session under a deletionTimestamp that is still there', () => {
  test('starts nothing, and what waits ends as SessionDeleted', () => {
    const fresh = { session: aSession({ deleting: true }), turns: [aTurn({ name: 'a' }), aTurn({ name: 'b' })] };
    assert.deepEqual(does(fresh), ['WriteTurn', 'WriteTurn']);
    assert.deepEqual(ends(fresh), [
      ['Cancelled', 'SessionDeleted', 1],
      ['Cancelled', 'SessionDeleted', 2],
    ]);
    const given = aTurn({ name: 'b', owner: null });
    assert.deepEqual(does({ session: fresh.session, turns: [given] }), ['AdoptTurn'], 'so that it can be ended');
    const orphaned = aTurn({ name: 'b', owner: null, status: { index: 2, phase: 'Queued' } });
    assert.deepEqual(does({ session: fresh.session, turns: [orphaned] }), [], 'it was let go on purpose');
    const plain = { ...fresh, class: aClass({ runner: 'None', image: 'any:1' }), turns: [given] };
    assert.deepEqual(does(plain), ['AdoptTurn']);
    const asking = aTurn({ name: 'c', status: { index: 3, phase: 'AwaitingApproval' } });
    assert.deepEqual(ends({ session: fresh.session, turns: [asking] }), [['Cancelled', 'SessionDeleted', 3]]);
  });

  test('has what runs cancelled, and its result committed', () => {
    const turns = [runningTurn('a')];
    assert.deepEqual(does({ ...bound, turns }), ['CancelTurn']);
    const told = { ...bound.link, cancelSent: new Map([['t-a', { at: NOW - 1000 }]]) };
    const waits = decide(aWorld({ ...bound, link: told, turns }));
    assert.deepEqual([waits.actions, waits.wakeAt], [[], NOW + 19_000]);
    const link = { ...told, delivery: { result: aResult('t-a', { outcome: 'Cancelled' }) } };
    assert.deepEqual(does({ ...bound, link, turns }), ['Commit']);
  });

  test('has what does not stop in time ended with its pod', () => {
    const link = { ...bound.link, cancelSent: new Map([['t-a', { at: NOW - 20_000 }]]) };
    const late = { ...bound, link, turns: [runningTurn('a')] };
    assert.deepEqual(does(late), ['WriteTurn', 'CloseLink', 'DeletePod']);
    assert.deepEqual(ends(late), [['Cancelled', 'SessionDeleted', 1]]);
  });

  test('has a runner asked first that has not answered this leader, for as long as a cancellation', () => {
    const turns = [runningTurn('a')];
    assert.deepEqual(does({ session, pod: aPod(), turns }), ['OpenLink']);
    const opening = (openedAt: number) => aLink({ phase: 'Opening', fresh: false, openedAt });
    const early = decide(aWorld({ ...bound, link: opening(NOW - 5_000), turns }));
    assert.deepEqual([early.actions, early.wakeAt], [[], NOW + 15_000]);
    assert.deepEqual(ends({ ...bound, link: opening(NOW - 20_000), turns }), [['Cancelled', 'SessionDeleted', 1]]);
  });

  test('gives up its pod when nothing runs in it, and its slot with the pod', () => {
    assert.deepEqual(does(bound), ['CloseLink', 'DeletePod']);
    assert.deepEqual(does({ ...bound, pod: aPod({ deleting: true }) }), []);
    const gone = decide(aWorld({ session, memory: { confirmedGone: { podUID: 'p-1' } } }));
    assert.deepEqual([gone.status.podName, gone.status.phase], [undefined, 'Terminating']);
    const owned = decide(aWorld({ session: aSession({ deleting: true, status: OWNED }) }));
    assert.deepEqual([owned.actions, owned.status.podName], [[], undefined]);
  });

  test('of a program without a runner has the turn ended and its pod deleted', () => {
    const pod = aPod();
    const labels = { ...pod.metadata.labels, 'berth.dev/runner': 'None', 'berth.dev/turn-uid': 't-a' };
    const world = {
      session: { ...session, spec: { ...session.spec, agent: undefined as never } },
      class: aClass({ runner: 'None', image: 'any:1', agent: { command: ['agent'] } }),
      pod: { ...pod, metadata: { ...pod.metadata, labels } },
      turns: [runningTurn('a')],
    };
    assert.deepEqual(does(world), ['WriteTurn', 'CloseLink', 'DeletePod']);
    assert.deepEqual(ends(world), [['Cancelled', 'SessionDeleted', 1]]);
  });
});
