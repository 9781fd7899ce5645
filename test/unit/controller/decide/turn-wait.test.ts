import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { CachedTurn, Waiting } from '../../../../controller/observed/world.ts';
import { ApiError } from '../../../../core/kube/errors.ts';
import { sessions, type Turn, turns as turnKind } from '../../../../core/resources/kinds.ts';
import { type Reason, reasons } from '../../../../core/resources/reasons.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';
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
  runningTurn,
  type WorldChange,
  written,
} from '../../../support/world.ts';

const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000).toISOString();
/** Status of a session that was admitted so many seconds ago and whose pod starts. */
const starting = (secondsAgo: number): SessionStatus => ({
  ...RUNNING_STATUS,
  phase: 'Starting',
  conditions: [
    { type: 'Admitted', status: 'True', reason: 'Admitted', message: '', lastTransitionTime: at(secondsAgo) },
    { type: 'Ready', status: 'False', reason: 'Starting', message: '', lastTransitionTime: at(secondsAgo) },
  ],
});
const container = (waiting: { reason: string; message: string }) =>
  aPod({
    status: {
      phase: 'Pending',
      containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state: { waiting } }],
    },
  });
const NO_SECRET = { reason: 'CreateContainerConfigError', message: 'secret "key" not found' };
const FULL: Waiting = { waiting: 'AtCapacity', message: 'full', position: 3 };
const opening = aLink({ phase: 'Opening' });
const session = aSession({ status: starting(0) });

/** The first turn as it is shown after the decision, and the session's condition Ready. */
function shown(change: WorldChange) {
  const { actions, status } = decide(aWorld(change));
  const [turn] = written(actions);
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const of = (type: string) => turn?.conditions?.find((condition) => condition.type === type);
  return { turn, ready, running: of('Running'), finished: of('Finished') };
}

describe('a turn that waits tells the reason of its session', () => {
  const cases: { what: string; world: WorldChange; reason: Reason }[] = [
    {
      what: 'a pod without its Secret',
      world: { session, pod: container(NO_SECRET), link: opening },
      reason: 'PodConfigError',
    },
    {
      what: 'an image that cannot be pulled',
      world: { session, pod: container({ reason: 'ErrImagePull', message: 'no such image' }), link: opening },
      reason: 'ImageUnavailable',
    },
    {
      what: 'a pod that no node takes',
      world: {
        session,
        link: opening,
        pod: aPod({
          onNode: false,
          status: {
            phase: 'Pending',
            conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }],
          },
        }),
      },
      reason: 'Unschedulable',
    },
    {
      what: 'a pod that cannot be created yet',
      world: {
        session: aSession({ status: { ...starting(0), podUID: undefined } as never }),
        memory: {
          startProblem: { reason: 'StartFailed', message: 'the API server fails' },
          createFailingSince: NOW - 5_000,
        },
      },
      reason: 'StartFailed',
    },
    { what: 'a slot', world: { slot: FULL }, reason: 'AtCapacity' },
    { what: 'a class', world: { class: undefined }, reason: 'ClassNotFound' },
    {
      what: 'an Environment',
      world: {
        session: aSession({ spec: { environment: { name: 'tools' } } }),
        class: aClass({ overrides: ['agent.command', 'environment'] }),
        environment: 'Missing',
      },
      reason: 'EnvironmentNotReady',
    },
    { what: 'the end of a hold', world: { session: aSession({ spec: { suspend: true } }) }, reason: 'Held' },
  ];
  for (const { what, world, reason } of cases) {
    test(`while it waits for ${what}: ${reason}`, () => {
      const turns = [aTurn({ age: 1 })];
      const { turn, ready, running, finished } = shown({ ...world, turns });
      assert.deepEqual([turn?.phase, turn?.index, turn?.podUID], ['Queued', 1, undefined]);
      assert.equal(ready?.reason, reason);
      for (const told of [running, finished]) {
        assert.deepEqual([told?.status, told?.reason, told?.message], ['False', reason, ready?.message]);
      }
      // A reason that the status has is not written again.
      const again = decide(aWorld({ ...world, turns: [aTurn({ age: 1, status: turn ?? {} })] }));
      assert.deepEqual(written(again.actions), []);
    });
  }

  test('and its new words where they change, but not each new place in the queue', () => {
    const { turn } = shown({ session, pod: container(NO_SECRET), link: opening, turns: [aTurn()] });
    const told = [aTurn({ status: turn ?? {} })];
    const other = container({ ...NO_SECRET, message: 'secret "other" not found' });
    assert.match(shown({ session, pod: other, link: opening, turns: told }).running?.message ?? '', /"other"/);
    const waiting = [aTurn({ status: shown({ slot: FULL, turns: [aTurn()] }).turn ?? {} })];
    assert.deepEqual(does({ slot: { ...FULL, message: 'full, another', position: 2 }, turns: waiting }), []);
    const unknown: Waiting = { waiting: 'CapacityUnknown', message: 'leadership 8', position: 3 };
    assert.deepEqual(does({ slot: unknown, turns: waiting }), []);
  });

  test('once, however many wait behind it', () => {
    const behind = Array.from({ length: 100 }, (_, i) =>
      aTurn({ age: 1, status: { index: i + 2, phase: 'Queued', conditions: [queuedAs('Queued')] } }),
    );
    const first = aTurn({ age: 2, status: { index: 1, phase: 'Queued', conditions: [queuedAs('Queued')] } });
    for (const world of [
      { session, pod: container(NO_SECRET), link: opening },
      { session: aSession({ spec: { suspend: true } }) },
      { slot: FULL },
    ]) {
      const { actions } = decide(aWorld({ ...world, turns: [...behind, first] }));
      assert.equal(written(actions).length, 1);
      const [action] = actions;
      assert.equal(action && 'turn' in action && action.turn, first);
    }
  });

  test('once, also where a turn that came before it since ends beside it', () => {
    const held = aSession({ spec: { suspend: true }, status: { phase: 'Suspended' } });
    const first = aTurn({ name: 'first', status: { index: 2, phase: 'Queued' } });
    const [status] = written(decide(aWorld({ session: held, turns: [first] })).actions);
    const waits = { ...first, status: status! };
    const cancelled = aTurn({ name: 'cancelled', age: 20, spec: { cancel: true }, status: { index: 1 } });
    const next = (turn: CachedTurn) => decide(aWorld({ session: held, turns: [cancelled, turn] })).actions;
    const told = (turn: CachedTurn) =>
      next(turn).flatMap((action) =>
        'status' in action ? [`${action.turn.metadata.name} ${action.status.phase}`] : [],
      );
    assert.deepEqual(told(waits), ['cancelled Cancelled']);
    assert.deepEqual(told(first), ['cancelled Cancelled', 'first Queued']);
  });
  test('before the pod is created again, so that a creation that fails for ever does not hide it', () => {
    const { podUID: _, ...owned } = starting(0);
    const memory = { startProblem: { reason: 'QuotaExceeded' as const, message: 'exceeded quota' } };
    const failing = { startProblem: { reason: 'StartFailed' as const, message: 'fails' }, createFailingSince: NOW };
    const world = { session: aSession({ status: owned }), turns: [aTurn({ age: 1 })] };
    assert.deepEqual(does({ ...world, memory: failing }), ['ShowWait', 'CreatePod']);
    assert.equal(shown({ ...world, memory }).running?.reason, 'QuotaExceeded');
  });

  test('but a leader that has not settled gives no index, and tells nothing of a group', () => {
    const world = { session, pod: container(NO_SECRET), link: opening, leaderIsReady: false };
    assert.deepEqual(does({ ...world, turns: [aTurn()] }), []);
    const indexed = aTurn({ status: { index: 1, phase: 'Queued', conditions: [queuedAs('Queued')] } });
    assert.deepEqual(does({ ...world, turns: [indexed] }), ['ShowWait']);
    const group = { free: false as const, group: 'team/g', limit: 1, running: [], unknown: 'not known' };
    const grouped = aSession({ spec: { concurrencyGroup: { name: 'g', limit: 1 } }, status: starting(0) });
    assert.deepEqual(does({ ...world, session: grouped, group, turns: [indexed], pod: aPod() }), []);
    assert.equal(shown({ ...world, session: grouped, group, turns: [indexed] }).running?.reason, 'PodConfigError');
  });
});

describe('a turn whose pod starts', () => {
  test('costs no write for that in the first three seconds, then says so', () => {
    const fresh = { session, pod: aPod({ status: { phase: 'Pending' } }), link: opening };
    const quick = decide(aWorld({ ...fresh, turns: [aTurn({ age: 1 })] }));
    assert.deepEqual([quick.actions, quick.wakeAt], [[], NOW + 3_000]);
    const slow = { ...fresh, session: aSession({ status: starting(3) }), turns: [aTurn({ age: 3 })] };
    const { turn, running, ready } = shown(slow);
    assert.deepEqual([turn?.phase, running?.status, running?.reason], ['Queued', 'False', 'Starting']);
    assert.equal(running?.message, ready?.message);
    assert.deepEqual(does({ ...slow, turns: [aTurn({ age: 9, status: turn ?? {} })] }), []);
  });
  test('says so in the write that gives it its index, if that is needed anyway', () => {
    const turns = [aTurn({ name: 'a', age: 2 }), aTurn({ name: 'b', age: 1 })];
    const { actions } = decide(aWorld({ session, pod: aPod({ status: { phase: 'Pending' } }), link: opening, turns }));
    assert.deepEqual(
      written(actions).map((status) => [status.index, reasonOf(status, 'Finished')]),
      [
        [1, 'Starting'],
        [2, 'Queued'],
      ],
    );
  });
  test('says no longer what it waited for before, once it starts for three seconds', () => {
    const { turn = {} } = shown({ slot: FULL, turns: [aTurn()] });
    const world = (seconds: number): WorldChange => ({
      session: aSession({ status: starting(seconds) }),
      pod: aPod({ status: { phase: 'Pending' } }),
      link: opening,
      turns: [aTurn({ age: 60, status: turn })],
    });
    assert.deepEqual(does(world(2)), []);
    assert.equal(shown(world(3)).running?.reason, 'Starting');
  });
  test('is written Running by its runner’s answer, whatever it said before', () => {
    const { turn = {} } = shown({ session, pod: container(NO_SECRET), link: opening, turns: [aTurn()] });
    const turns = [aTurn({ status: turn })];
    const begun = shown({ session, pod: aPod(), link: aLink(), turns });
    assert.deepEqual([begun.turn?.phase, begun.turn?.attempt, begun.running?.status], ['Running', 1, 'True']);
  });
  test('says nothing beside the write that owns the incarnation', () => {
    const { podName: _, podUID: __, ...lost } = starting(600);
    const before = reasons.StartFailed;
    const conditions = (lost.conditions ?? []).map((one) => ({ ...one, status: 'False' as const, message: before }));
    for (const reason of ['Suspended', 'StartFailed']) {
      const status = { ...lost, conditions: conditions.map((one) => ({ ...one, reason })) };
      assert.deepEqual(does({ session: aSession({ status }), turns: [aTurn({ age: 600 })] }), ['Admit']);
    }
  });
  test('is told nothing of it while an earlier turn runs', () => {
    const turns = [runningTurn('a'), aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [] } })];
    const { actions } = decide(aWorld({ session: aSession({ status: RUNNING_STATUS }), pod: aPod(), turns }));
    assert.ok(!actions.some((action) => action.do === 'ShowWait'));
  });
});

describe('in a world', () => {
  test('a turn says why its pod cannot be created, as its session does, then runs, with no attempt counted', async () => {
    const world = new QuietWorld();
    await world.start();
    let isBroken = true;
    world.refuse = ({ verb, resource }) => (isBroken && verb === 'create' && resource === 'pods' ? REFUSED : undefined);
    const session = await world.session('broken', {}, 'Starting');
    await world.give('waits', { ms: 10, output: 1 }, 'broken');
    const turn = () => world.server.get(turnKind, 'team', 'waits');
    const { status } = await world.sessionUntil(
      'broken',
      ({ status }) => reasonOf(status ?? {}, 'Ready') !== 'Starting',
    );
    assert.equal(reasonOf(turn()?.status ?? {}, 'Running'), 'StartFailed', 'at the moment at which its session does');
    const message = (of: { conditions?: SessionStatus['conditions'] }, type: string) =>
      of.conditions?.find((condition) => condition.type === type)?.message;
    assert.equal(message(turn()?.status ?? {}, 'Running'), message(status ?? {}, 'Ready'));
    isBroken = false;
    await world.until('the turn ends', () => turn()?.status?.phase === 'Succeeded');
    assert.deepEqual([turn()?.status?.attempt, session.metadata.name], [1, 'broken']);
  });
  test('a turn is not written Running for a runner that cannot be bound, from the first try on', async () => {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('locked');
    await world.turn(session, 'first', { ms: 10, output: 1, state: 100 });
    await world.edit('locked', { suspendRequest: 'now' });
    const { status } = await world.sessionUntil('locked', ({ status }) => status?.phase === 'Suspended');
    const state = { ...status?.state, keyId: 'gone' };
    const ref = { namespace: 'team', name: 'locked' };
    await world.server.admin.patch(sessions, ref, { status: { state } }, { type: 'merge', subresource: 'status' });
    const phases: unknown[] = [];
    world.refuse = ({ verb, resource, object }) => {
      if (verb === 'replace' && resource === 'turns') phases.push((object as Turn).status?.phase);
      return undefined;
    };
    await world.give('second', { ms: 10, output: 1 }, 'locked');
    await world.sessionUntil('locked', ({ status }) => reasonOf(status ?? {}, 'Ready') === 'StateKeyUnknown');
    assert.equal(reasonOf(world.server.get(turnKind, 'team', 'second')?.status ?? {}, 'Running'), 'StateKeyUnknown');
    await world.pass(5_000);
    assert.deepEqual(phases, ['Queued']);
  });
  test('a first turn costs no write but those with which it begins and ends', async () => {
    const world = new QuietWorld();
    await world.start();
    world.calls = [];
    await world.session('quick', { turns: 'One', input: { ms: 10, output: 1 } }, 'Finished');
    assert.equal(world.calls.filter((call) => call === 'replace turns').length, 2);
  });
});

const REFUSED = new ApiError({ code: 500, reason: 'InternalError', message: 'etcd has no leader' });

function queuedAs(reason: Reason): NonNullable<CachedTurn['status']['conditions']>[number] {
  return { type: 'Finished', status: 'False', reason, message: reasons[reason], lastTransitionTime: at(60) };
}
