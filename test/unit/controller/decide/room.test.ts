import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { Shortage } from '../../../../core/store/store.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  does,
  NOW,
  RUNNING_STATUS,
  reasonOf,
  written,
} from '../../../support/world.ts';

const shortOfRoom: Shortage = {
  namespace: 'team',
  bytes: 900,
  holding: { states: 800, history: 100 },
  others: 50,
  share: 950,
  wanted: 120,
};
const turns = [aTurn({ name: 'a' })];
const running = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink({ phase: 'Bound' }), turns };

describe('a turn of a namespace that has no room for what its session stored last time', () => {
  test('waits before it runs, has room made first, and says so in the turn', () => {
    assert.ok(does(running).includes('WriteTurn'), 'with room');
    const { actions } = decide(aWorld({ ...running, shortOfRoom }));
    assert.deepEqual(
      actions.map(({ do: what }) => what).filter((what) => what !== 'ShowWait'),
      ['MakeRoom'],
    );
    const memory = { roomMadeAt: NOW - 10_000 };
    const later = decide(aWorld({ ...running, shortOfRoom, memory }));
    const [shown] = written(later.actions);
    const { reason, message } = shown?.conditions?.[0] ?? {};
    assert.deepEqual([shown?.phase, reason], ['Queued', 'StoreShareUsed']);
    assert.equal(
      message,
      'Namespace "team" holds 900 bytes of the store, and its share is 950; the last turn stored 120. Delete its sessions or turns that are no longer needed, or raise controller.storeCeilingBytes.',
    );
    const limited = decide(aWorld({ ...running, shortOfRoom: { ...shortOfRoom, quota: 950 }, memory }));
    assert.match(
      written(limited.actions)[0]?.conditions?.[0]?.message ?? '',
      /and its quota is 950; .* or raise storeBytes of the namespace in quotas of the chart\.$/,
    );
    assert.ok(!later.actions.some(({ do: what }) => what === 'MakeRoom'), 'it was tried just now');
    assert.equal(later.wakeAt, NOW + 20_000, 'and is tried again');
  });

  test('takes no slot for it', () => {
    const waits = { turns, slot: 'Available' as const, shortOfRoom, memory: { roomMadeAt: NOW } };
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1 } });
    const { admission, status, waiting } = decide(aWorld({ ...waits, session, pod: undefined, link: undefined }));
    assert.equal(admission, undefined);
    assert.deepEqual(
      [waiting, status.queue?.reason, reasonOf(status, 'Admitted')],
      [false, 'StoreShareUsed', 'StoreShareUsed'],
    );
  });

  test('takes no place in its concurrency group, which others may need to make the room', () => {
    const session = aSession({ spec: { concurrencyGroup: { name: 'group', limit: 1 } }, status: RUNNING_STATUS });
    const world = { ...running, session, memory: { roomMadeAt: NOW } };
    assert.equal(decide(aWorld(world)).group, 'Begins', 'with room');
    assert.equal(decide(aWorld({ ...world, shortOfRoom })).group, undefined);
  });

  test('gives its slot to a session that waits for one', () => {
    const memory = { roomMadeAt: NOW };
    const world = { ...running, memory, preemptFor: { for: 'team/other' } };
    assert.ok(!does(world).includes('SuspendRunner'), 'with room');
    assert.ok(does({ ...world, shortOfRoom }).includes('SuspendRunner'));
  });

  test('never waits where its session’s own state is the trouble: it may be what makes the state smaller', () => {
    for (const reason of ['StateNotStored', 'StateTooLarge'] as const) {
      const conditions = [
        {
          type: 'StatePersisted',
          status: 'False' as const,
          reason,
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ];
      const session = aSession({ status: { ...RUNNING_STATUS, conditions } });
      assert.ok(does({ ...running, session, shortOfRoom }).includes('WriteTurn'), reason);
    }
  });

  test('that runs without a runner does not wait', () => {
    const runnerless = aClass({ runner: 'None', image: 'any' });
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1 } });
    const world = { session, turns, slot: 'Available' as const, class: runnerless, pod: undefined, link: undefined };
    assert.ok(does({ ...world, shortOfRoom }).includes('Admit'));
  });
});
