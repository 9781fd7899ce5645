import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AdmissionGate } from '../../../../controller/capacity/admission-gate.ts';
import { silentLogger } from '../../../../core/system.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aTurn } from '../../../support/world.ts';

function setUp(afterMs: number) {
  const seen = new SeenCluster();
  seen.add('team/waits');
  seen.add('team/idle');
  const grouped = seen.add('team/grouped', { spec: { concurrencyGroup: { name: 'g', limit: 1 } } });
  const turn = aTurn({
    owner: grouped.metadata.uid,
    spec: { session: 'grouped' },
    status: { index: 1, phase: 'Queued' },
  });
  seen.turns.push(turn);
  const clock = new VirtualClock();
  const stop = new AbortController();
  const state = {
    ready: false,
    /** Sessions are reconciled, also again once the leader has ready. */
    isLookedAt: false,
    tooLarge: [] as string[],
    open: false,
    reads: 0,
    unreadable: false,
    line: ['team/waits'],
    groups: [] as string[],
    looks: [] as string[],
    kept: [] as [key: string, ms: number][],
  };
  const looked = () => {
    state.isLookedAt = true;
    for (const key of seen.sessions.keys()) if (!state.tooLarge.includes(key)) opening.reconciled(key);
  };
  const opening: AdmissionGate = new AdmissionGate({
    caches: {
      session: seen.session,
      turnsNaming: seen.turnsNaming,
      closed: seen.closed,
      keys: () => new Set(seen.sessions.keys()),
      refresh: async () => {
        state.reads++;
        if (state.unreadable) throw new Error('no answer');
      },
    },
    clock,
    log: silentLogger,
    afterMs,
    queued: () => state.line,
    inGroups: () => state.groups,
    requeue: (key) => state.looks.push(key),
    reserve: (key, ms) => state.kept.push([key, ms]),
    ready: () => {
      state.ready = true;
      if (state.isLookedAt) looked();
    },
    open: () => {
      state.open = true;
    },
    signal: stop.signal,
  });
  opening.start();
  const written = () => {
    const session = seen.sessions.get('team/waits');
    if (session) session.metadata.resourceVersion = '101';
  };
  return { seen, opening, clock, state, stop, looked, written, turn };
}

describe('a leader admits sessions', () => {
  test('at once when the earlier leader released the lease', () => {
    const { ready, open } = setUp(0).state;
    assert.deepEqual([ready, open], [true, true]);
  });
  test('after a take-over only when the earlier leader’s last request is dead, and its effect was read', async () => {
    const { clock, state, looked, written } = setUp(5_000);
    looked();
    written();
    await clock.advance(4_999);
    assert.deepEqual([state.ready, state.open, state.reads], [false, false, 0]);
    state.unreadable = true;
    await clock.advance(10_000);
    assert.deepEqual([state.ready, state.open], [false, false]);
    state.unreadable = false;
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('not before every waiting session was written, so that late writes of the earlier leader conflict', async () => {
    const { clock, state, looked, written } = setUp(5_000);
    looked();
    await clock.advance(6_000);
    assert.deepEqual([state.ready, state.open], [true, false]);
    assert.ok(state.looks.includes('team/waits') && !state.looks.includes('team/idle'));
    written();
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('not before every turn that waits for its group was written', async () => {
    const { clock, state, looked, written, turn } = setUp(5_000);
    state.groups = ['team/grouped'];
    looked();
    written();
    await clock.advance(6_000);
    assert.equal(state.open, false);
    turn.metadata.resourceVersion = '999';
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('not before every session was reconciled, as it may be one that waits', async () => {
    const { clock, state, looked, written } = setUp(5_000);
    written();
    await clock.advance(6_000);
    assert.equal(state.open, false);
    looked();
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('not before every session was reconciled again, with the effects of the earlier leader known', async () => {
    const { clock, state, looked, written } = setUp(5_000);
    looked();
    written();
    state.isLookedAt = false;
    await clock.advance(6_000);
    assert.deepEqual([state.ready, state.open], [true, false]);
    looked();
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('after some time although a waiting session cannot be written', async () => {
    const { clock, state, looked } = setUp(5_000);
    looked();
    await clock.advance(34_000);
    assert.equal(state.open, false);
    await clock.advance(2_000);
    assert.equal(state.open, true);
  });
  test('with a slot reserved for a session that is too large to be written, for the rest of that time', async () => {
    const { opening, clock, state, looked } = setUp(5_000);
    looked();
    state.tooLarge.push('team/waits');
    opening.tooLarge('team/waits');
    await clock.advance(4_999);
    assert.deepEqual([state.open, state.kept], [false, []]);
    await clock.advance(1);
    assert.deepEqual([state.open, state.kept], [true, [['team/waits', 30_000]]]);
  });
  test('not before a turn that waits for its group was written, although its session is too large', async () => {
    const { opening, clock, state, looked, written } = setUp(5_000);
    state.groups = ['team/grouped'];
    looked();
    written();
    opening.tooLarge('team/grouped');
    await clock.advance(6_000);
    assert.equal(state.open, false);
  });
  test('not before a session was written that was too large at first', async () => {
    const { opening, clock, state, looked } = setUp(5_000);
    opening.tooLarge('team/waits');
    looked();
    await clock.advance(6_000);
    assert.equal(state.open, false);
  });
  test('with any number of sessions in a namespace that cannot be read', async () => {
    const { seen, clock, state } = setUp(5_000);
    state.groups = ['team/grouped'];
    seen.unread.set('team', 'forbidden');
    await clock.advance(5_000);
    assert.equal(state.open, true);
  });
  test('with any number of turns that name a missing session', async () => {
    const { seen, opening, clock, state, written } = setUp(5_000);
    written();
    await clock.advance(6_000);
    opening.reconciled('team/waits');
    opening.reconciled('team/idle');
    assert.equal(state.open, false);
    seen.sessions.delete('team/grouped');
    await clock.advance(1_000);
    assert.equal(state.open, true);
  });
  test('never after it has lost the lease', async () => {
    const { clock, state, looked, written, stop } = setUp(5_000);
    looked();
    written();
    stop.abort(new Error('deposed'));
    await clock.advance(60_000);
    assert.equal(state.open, false);
  });
});
