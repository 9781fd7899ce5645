import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { GroupView } from '../../../../controller/observed/capacity-view.ts';
import type { Waiting } from '../../../../controller/observed/world.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
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
  reasonOf,
  written,
} from '../../../support/world.ts';

const FULL: Waiting = {
  waiting: 'AtCapacity',
  message: 'full, held by team/a',
  position: 3,
  holders: [{ name: 'team/a', since: '2026-01-01T00:00:00Z' }],
};

describe('a session that waits for a slot', () => {
  test('says since when, why, where in the queue it is and who holds the slots', () => {
    const { status } = decide(aWorld({ slot: FULL }));
    assert.deepEqual(status.queue, {
      position: 3,
      since: new Date(NOW - 60_000).toISOString(),
      reason: 'AtCapacity',
      holders: FULL.holders,
    });
    assert.equal(status.phase, 'Queued');
    assert.equal(status.conditions?.find(({ type }) => type === 'Admitted')?.message, FULL.message);
    assert.equal(status.conditions?.find(({ type }) => type === 'Ready')?.message, FULL.message);
  });

  const queue = { position: 3, since: new Date(NOW - 60_000).toISOString(), reason: 'AtCapacity' };
  const waited = () => {
    const { status } = decide(aWorld({ slot: FULL }));
    return aSession({ status: { ...status, queue } });
  };
  const moved: Waiting = { ...FULL, position: 2, message: 'full, held by team/b' };

  test('is not written again within 10 s when its position changes', () => {
    const decision = decide(aWorld({ session: waited(), slot: moved, memory: { queueWrittenAt: NOW - 9_000 } }));
    assert.deepEqual(decision.status, waited().status);
    assert.equal(decision.wakeAt, NOW + 1_000);
  });
  test('is written after 10 s, and later far behind', () => {
    const memory = { queueWrittenAt: NOW - 10_000 };
    assert.equal(decide(aWorld({ session: waited(), slot: moved, memory })).status.queue?.position, 2);
    const far = { ...moved, position: 500 };
    assert.equal(decide(aWorld({ session: waited(), slot: far, memory })).status.queue?.position, 3);
  });
  test('is written at once when it waits for something else', () => {
    const unknown: Waiting = { waiting: 'CapacityUnknown', message: 'not known', position: 3 };
    const { status } = decide(aWorld({ session: waited(), slot: unknown, memory: { queueWrittenAt: NOW } }));
    assert.equal(status.queue?.reason, 'CapacityUnknown');
    assert.equal(reasonOf(status, 'Admitted'), 'CapacityUnknown');
  });
  test('that is to be woken has waited since its first turn was given', () => {
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1 } });
    const turn = aTurn({ age: 5 });
    const applicant = { ...aWorld().applicant, since: NOW - 5_000 };
    const { status } = decide(aWorld({ session, turns: [turn], slot: FULL, applicant }));
    assert.equal(status.queue?.since, new Date(NOW - 5_000).toISOString());
  });
});

const LIMITED: GroupView = {
  free: false,
  group: 'team/tools',
  limit: 2,
  running: ['a-1 of team/a', 'b-1 of team/b'],
  unknown: undefined,
};
const inGroup = (status?: SessionStatus) =>
  aSession({ spec: { concurrencyGroup: { name: 'tools', limit: 2 } }, ...(status ? { status } : {}) });

describe('a session in a concurrency group', () => {
  test('asks for no slot while all it wants is a turn that the group holds back', () => {
    const decision = decide(aWorld({ session: inGroup(), turns: [aTurn()], group: LIMITED }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['WriteTurn'],
    );
    assert.deepEqual([decision.waiting, decision.group, decision.status.phase], [false, 'Waits', 'Queued']);
    assert.deepEqual(decision.status.queue?.reason, 'GroupLimit');
    assert.equal(reasonOf(decision.status, 'Admitted'), 'GroupLimit');
  });
  test('tells its turn which group holds it back and who runs', () => {
    const [action] = decide(aWorld({ session: inGroup(), turns: [aTurn()], group: LIMITED })).actions;
    assert.ok(action?.do === 'WriteTurn');
    const { phase, index, conditions } = action.status;
    assert.deepEqual([phase, index, conditions?.[0]?.reason], ['Queued', 1, 'GroupLimit']);
    assert.equal(
      conditions?.[0]?.message,
      'Concurrency group "tools" runs 2 turns at once: a-1 of team/a, b-1 of team/b.',
    );
  });
  test('tells its turn when it is not known what runs, so that the turn is written by this leader', () => {
    const told = aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } });
    const before = decide(aWorld({ session: inGroup(), turns: [told], group: LIMITED }));
    const known = aTurn({ status: written(before.actions)[0] ?? {} });
    const group = { ...LIMITED, running: [], unknown: 'not known (leadership 7)' };
    const [status] = written(decide(aWorld({ session: inGroup(), turns: [known], group })).actions);
    assert.equal(status?.conditions?.[0]?.reason, 'CapacityUnknown');
    const left = aTurn({ status: status ?? {} });
    assert.deepEqual(decide(aWorld({ session: inGroup(), turns: [left], group })).actions, []);
    const later = { ...group, unknown: 'not known (leadership 8)' };
    const [again] = written(decide(aWorld({ session: inGroup(), turns: [left], group: later })).actions);
    assert.equal(again?.conditions?.[0]?.message, later.unknown, 'also when an earlier leader has told it so');
  });
  test('that has a pod keeps its turn queued', () => {
    const world = aWorld({
      session: inGroup(RUNNING_STATUS),
      pod: aPod(),
      link: aLink(),
      turns: [aTurn({ status: { index: 1, phase: 'Queued' } })],
      group: LIMITED,
    });
    const decision = decide(world);
    assert.deepEqual(
      decision.actions.map((action) => ('status' in action ? action.status.phase : action.do)),
      ['Queued'],
    );
    assert.equal(decision.group, 'Waits');
    const told = aTurn({ status: written(decision.actions)[0] ?? {} });
    const again = decide({ ...world, turns: [told] });
    assert.deepEqual([again.actions, again.group], [[], 'Waits'], 'nor when it has been told why');
  });
  test('counts in its group from its slot on, until the turn runs', () => {
    assert.equal(decide(aWorld({ session: inGroup(), turns: [aTurn()] })).group, 'Begins');
    const { podUID: _, ...owned } = RUNNING_STATUS;
    assert.equal(decide(aWorld({ session: inGroup(owned), turns: [aTurn()] })).group, 'Begins');
    const ready = { session: inGroup(RUNNING_STATUS), pod: aPod(), link: aLink() };
    assert.equal(decide(aWorld({ ...ready, turns: [aTurn()] })).group, 'Begins');
    const running = aTurn({ status: { index: 1, phase: 'Running', podUID: POD_UID, attempt: 1 } });
    assert.equal(decide(aWorld({ ...ready, turns: [running] })).group, undefined);
  });
  test('does not count in its group while it waits for a slot, is held, or has nothing to do', () => {
    assert.equal(decide(aWorld({ session: inGroup(), turns: [aTurn()], slot: FULL })).group, undefined);
    assert.equal(decide(aWorld({ session: inGroup() })).group, undefined);
    const held = aSession({ spec: { suspend: true, concurrencyGroup: { name: 'tools', limit: 2 } } });
    assert.equal(decide(aWorld({ session: held, turns: [aTurn()], group: LIMITED })).group, undefined);
    const cancelled = aTurn({ spec: { cancel: true } });
    assert.equal(decide(aWorld({ session: inGroup(), turns: [cancelled], group: LIMITED })).group, undefined);
  });
  test('asks for no slot for an input that the group holds back, before the turn is made of it', () => {
    const session = inGroup();
    session.spec.input = { digest: 'd'.repeat(64), bytes: 7 };
    const { actions, group } = decide(aWorld({ session, group: LIMITED }));
    assert.deepEqual([actions.map((action) => action.do), group], [['CreateFirstTurn'], 'Waits']);
    assert.equal(decide(aWorld({ session })).group, 'Begins');
  });
  test('gets its pod at once when it has no turn', () => {
    assert.deepEqual(does({ session: inGroup(), group: LIMITED }), ['Admit']);
  });
});

test('a preempted session says by which, as long as it is suspended, and an event tells of it', () => {
  const gone = { session: aSession({ status: RUNNING_STATUS }), memory: { confirmedGone: { podUID: POD_UID } } };
  const before = gone.session.status;
  const { status } = decide(aWorld({ ...gone, preemptFor: { for: 'team/waiter' } }));
  const condition = status.conditions?.find(({ type }) => type === 'Suspended');
  assert.deepEqual([condition?.status, condition?.reason], ['True', 'Preempted']);
  assert.match(condition?.message ?? '', /It was preempted for team\/waiter\.$/);
  assert.deepEqual(
    noteworthy(before, status).map(({ reason }) => reason),
    ['Preempted'],
  );
  const later = decide(aWorld({ session: aSession({ status }) }));
  assert.deepEqual(
    later.status.conditions?.find(({ type }) => type === 'Suspended'),
    condition,
  );
});

test('a priority is refused where the class does not let sessions set it', () => {
  const session = aSession({ spec: { priority: 5 } });
  assert.equal(reasonOf(decide(aWorld({ session })).status, 'Admitted'), 'NotAllowed');
  const allowed = aClass({ overrides: ['agent.command', 'priority'] });
  assert.deepEqual(does({ session, class: allowed }), ['Admit']);
});

test('a session whose agent was active a moment ago, by its runner’s word, is not preempted', () => {
  const lastActiveAt = new Date(NOW - 60_000).toISOString();
  const world = aWorld({
    session: aSession({ status: { ...RUNNING_STATUS, lastActiveAt } }),
    pod: aPod(),
    link: aLink(),
    preemptFor: { for: 'team/waiter' },
  });
  world.session.metadata.creationTimestamp = lastActiveAt;
  assert.equal(decide(world).actions[0]?.do, 'SuspendRunner');
  const active = decide({ ...world, link: aLink({ lastActivity: NOW - 4_000 }) });
  assert.deepEqual([active.actions, active.wakeAt], [[], NOW + 6_000]);
});
