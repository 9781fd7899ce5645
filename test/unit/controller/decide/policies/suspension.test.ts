import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../../controller/decide/decide.ts';
import type { CachedTurn, World } from '../../../../../controller/observed/world.ts';
import { noteworthy } from '../../../../../controller/status/events.ts';
import { ended } from '../../../../../controller/status/turn-status.ts';
import type { SessionStatus } from '../../../../../core/resources/session.ts';
import type { TurnStatus } from '../../../../../core/resources/turn.ts';
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
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  type WorldChange,
} from '../../../../support/world.ts';

const HOUR = 3_600_000;
const at = (hours: number) => new Date(NOW - hours * HOUR).toISOString();
const bound = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink() };
const asked = { suspension: { podUID: POD_UID, askedAt: NOW - 100 } };
const snapshot = {
  seq: 9,
  kind: 'state' as const,
  message: { digest: 'd', keyId: 'k', bytes: 1 },
  binary: Buffer.alloc(1),
};
const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 9, inline: 'AA==' };
const fenced = aLink({ suspendSent: true, suspended: true, snapshot });

/** A session that did its last turn `hours` ago, with a pod that is a day old and a runner that says the same. */
function resting(hours: number, change: Parameters<typeof aSession>[0] = {}): WorldChange {
  const session = aSession({ ...change, status: { ...RUNNING_STATUS, lastActiveAt: at(hours), ...change.status } });
  session.metadata.creationTimestamp = at(24);
  const link = aLink({ lastActivity: NOW - hours * HOUR });
  return {
    session,
    pod: aPod({ age: 24 * 3600 }),
    link,
    class: aClass({ overrides: ['agent.command', 'timeouts', 'persistence', 'agent.env'] }),
  };
}

describe('an idle session', () => {
  test('gives up its pod after two hours by default', () => {
    assert.deepEqual(does(resting(2)), ['SuspendRunner']);
    const before = decide(aWorld(resting(1.99)));
    assert.deepEqual(before.actions, []);
    assert.equal(before.wakeAt, NOW + 0.01 * HOUR);
  });
  test('has the time that it, or else its class, says, at most the class’s ceiling', () => {
    const session = { spec: { timeouts: { idle: '10m' } } };
    assert.deepEqual(does(resting(0.5, session)), ['SuspendRunner']);
    const byClass = aClass({ timeouts: { idle: '20m' } });
    assert.deepEqual(does({ ...resting(0.5), class: byClass }), ['SuspendRunner']);
    assert.deepEqual(does({ ...resting(0.5), class: aClass({ maxTimeouts: { idle: '20m' } }) }), ['SuspendRunner']);
  });
  test.for([
    { incarnation: 1, pod: 24, active: 1.5, idle: false },
    { incarnation: 2, pod: 24, active: 1.5, idle: false },
    { incarnation: 7, pod: 2.5, active: 0.1, idle: false },
    { incarnation: 7, pod: 0.5, active: 24, idle: false },
    { incarnation: 1, pod: 0.5, active: 24, idle: false },
    { incarnation: 2, pod: 24, active: 2, idle: true },
    { incarnation: 2, pod: 2, active: 24, idle: true },
  ])(
    'has rested since the later of its last activity and its pod, in any incarnation: %o',
    ({ incarnation, pod, active, idle }) => {
      const world = resting(active, { status: { incarnation, podName: `s-${incarnation}` } });
      const { actions, wakeAt } = decide(aWorld({ ...world, pod: aPod({ age: pod * 3600, incarnation }) }));
      assert.deepEqual(
        actions.map((action) => action.do),
        idle ? ['SuspendRunner'] : [],
      );
      if (!idle) assert.equal(wakeAt, NOW + (2 - Math.min(pod, active)) * HOUR);
    },
  );
  test('says why it is suspended, and goes on saying it', () => {
    const world = aWorld(resting(3));
    const suspending = decide(world).status;
    assert.equal(suspending.phase, 'Suspending');
    assert.match(suspending.conditions?.find(({ type }) => type === 'Ready')?.message ?? '', /timeouts\.idle \(2h\)/);
    const { podName: _, podUID: __, ...gone } = suspending;
    const session = { ...world.session, status: gone };
    const suspended = decide(aWorld({ session })).status;
    assert.equal(suspended.phase, 'Suspended');
    const message = suspended.conditions?.find(({ type }) => type === 'Suspended')?.message;
    assert.match(message ?? '', /timeouts\.idle/);
    const later = decide(aWorld({ session: { ...world.session, status: suspended } })).status;
    assert.equal(later.conditions?.find(({ type }) => type === 'Suspended')?.message, message);
  });
  test('is never marked ended by it', () => {
    const { status } = decide(aWorld(resting(3)));
    assert.equal(
      status.conditions?.some(({ type }) => type === 'Finished'),
      false,
    );
  });
});

describe('never reclaimed is', () => {
  const spared = (world: WorldChange) => {
    const { actions, status } = decide(aWorld(world));
    assert.ok(!actions.some(({ do: what }) => what === 'SuspendRunner'));
    assert.notEqual(status.phase, 'Suspending');
  };
  const idle = resting(5);
  const old = { age: 5 * 3600 };
  const link = (change: Parameters<typeof aLink>[0]) => aLink({ lastActivity: NOW - 5 * HOUR, ...change });
  test('a session with a turn that runs', () => {
    spared({ ...idle, turns: [runningTurn('a', old)], link: link({ active: 't-a', sent: new Set(['t-a']) }) });
  });
  test('a session with a turn that is queued', () => {
    spared({ ...idle, turns: [aTurn({ ...old, status: { index: 1, phase: 'Queued', conditions: [] } })] });
  });
  test('a session with a turn that nobody has taken in yet', () => {
    spared({ ...idle, turns: [aTurn({ owner: null })] });
  });
  test('a session that waits for an approval', () => {
    const turn = runningTurn('a', { ...old, status: { phase: 'AwaitingApproval' } as TurnStatus });
    spared({ ...idle, turns: [turn] });
  });
  test('a session whose result is not committed yet', () => {
    spared({ ...idle, link: link({ delivery: { result: aResult('t-gone') } }) });
  });
  test('a session that was just created', () => {
    spared({ ...bound, session: aSession({ status: RUNNING_STATUS }), link: aLink({ lastActivity: NOW - 5 * HOUR }) });
  });
  test('a session that has just got its pod after a long wait for a slot', () => {
    spared({ ...idle, pod: aPod({ age: 60 }) });
  });
  test('a session whose turn has just ended', () => {
    spared({ ...idle, turns: [aTurn({ ...old, status: { index: 1, phase: 'Succeeded', finishedAt: at(0.1) } })] });
  });
  test('a session that somebody has just touched', () => {
    const { session } = resting(5);
    const annotations = { 'berth.dev/touched-at': at(0.1) };
    spared({ ...idle, session: { ...session, metadata: { ...session?.metadata, annotations } } as World['session'] });
  });
  test('a session whose agent is active, by the runner’s own word', () => {
    spared({ ...idle, link: link({ lastActivity: NOW - 60_000 }) });
  });
  test('a session in which a client’s command runs, until it has rested as long after it', () => {
    spared({ ...idle, link: link({ commandActivity: NOW - 60_000 }) });
    const { actions } = decide(aWorld({ ...idle, link: link({ commandActivity: NOW - 5 * HOUR }) }));
    assert.ok(actions.some(({ do: what }) => what === 'SuspendRunner'));
  });
  test('a session whose runner was not asked yet', () => {
    const { lastActivity: _, ...unasked } = aLink();
    spared({ ...idle, link: unasked });
    spared({ ...idle, link: link({ phase: 'Opening' }) });
  });
  test('a session whose state is not kept', () => {
    const off = { spec: { persistence: { state: false }, timeouts: { lifetime: '48h' } } };
    spared({ ...idle, ...resting(5, off) });
    spared({ ...resting(5, off), preemptFor: { for: 'team/other' } });
    spared({ ...resting(5, off), node: { cordoned: true, ready: true } });
    spared({ ...idle, class: aClass({ persistence: { state: false }, timeouts: { lifetime: '48h' } }) });
  });
  test('at capacity, and on a cordoned node, one that has something to do', () => {
    for (const need of [{ preemptFor: { for: 'team/other' } }, { node: { cordoned: true, ready: true } }]) {
      spared({
        ...idle,
        ...need,
        turns: [runningTurn('a', old)],
        link: link({ active: 't-a', sent: new Set(['t-a']) }),
      });
      spared({ ...idle, ...need, turns: [aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } })] });
    }
  });
});

describe('a session that rests', () => {
  test('gives its slot to another one, and says to which', () => {
    const decision = decide(aWorld({ ...resting(0.1), preemptFor: { for: 'team/other' } }));
    assert.deepEqual(
      decision.actions.map(({ do: what }) => what),
      ['SuspendRunner'],
    );
    assert.match(decision.status.conditions?.find(({ type }) => type === 'Ready')?.message ?? '', /team\/other/);
  });
  test('leaves a cordoned node', () => {
    assert.deepEqual(does({ ...resting(0.1), node: { cordoned: true, ready: true } }), ['SuspendRunner']);
  });
  test('gives its slot also while its next turn waits for its group, even one that is asked to suspend after that', () => {
    const turn = aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } });
    const group = { free: false, group: 'team/g', limit: 1, running: ['a of team/b'] } as World['group'];
    const waits = { ...resting(0.1), turns: [turn], group };
    assert.ok(does({ ...waits, preemptFor: { for: 'x' } }).includes('SuspendRunner'));
    assert.ok(!does(waits).includes('SuspendRunner'));
    assert.ok(!does({ ...waits, group: { free: true }, preemptFor: { for: 'x' } }).includes('SuspendRunner'));
    const { session } = resting(0.1);
    const suspendHandled = { id: 'r', afterTurn: 1 };
    const asked = {
      ...session,
      spec: { ...session?.spec, suspendRequest: 'r' },
      status: { ...session?.status, suspendHandled },
    };
    assert.ok(
      does({ ...waits, session: asked as World['session'], preemptFor: { for: 'x' } }).includes('SuspendRunner'),
    );
  });
  test('gives its slot also while it waits for an approval, if it is told to', () => {
    const turn = runningTurn('a', { status: { phase: 'AwaitingApproval' } as TurnStatus });
    assert.ok(does({ ...resting(0.1), turns: [turn], preemptFor: { for: 'x' } }).includes('SuspendRunner'));
  });
});

describe('a turn that arrives while the session is suspended', () => {
  const idle = { ...resting(5), memory: asked, link: { ...fenced, lastActivity: NOW - 5 * HOUR } };
  const turn = aTurn({ name: 'b' });
  const goesOn = ['ResumeRunner', 'WriteTurn', 'StartTurn'];
  test('stops it after the fence', () => {
    assert.deepEqual(does({ ...idle, link: { ...idle.link, suspended: false }, turns: [turn] }), goesOn);
  });
  test('stops it after the state was handed over', () => {
    assert.deepEqual(does({ ...idle, turns: [turn] }), goesOn);
  });
  test('stops it after the state was verified', () => {
    const memory = { suspension: { ...asked.suspension, verified: 'Unchanged' as const } };
    assert.deepEqual(does({ ...idle, memory, turns: [turn] }), goesOn);
  });
  test('is not given to a pod whose deletion was asked for, though the cache does not show it', () => {
    const memory = { ...asked, deletionPending: { podUID: POD_UID, why: 'suspended: Idle' } };
    const decision = decide(aWorld({ ...idle, memory, turns: [turn] }));
    assert.equal(
      decision.actions.some(({ do: what }) => what === 'StartTurn' || what === 'ResumeRunner'),
      false,
    );
    assert.equal(decision.actions.at(-1)?.do, 'DeletePod');
  });
  test('is not given to a pod that is being deleted', () => {
    const decision = decide(aWorld({ ...idle, pod: aPod({ deleting: true, age: 24 * 3600 }), turns: [turn] }));
    assert.equal(
      decision.actions.some(({ do: what }) => what === 'StartTurn' || what === 'ResumeRunner'),
      false,
    );
  });
  test('wakes the session when the pod is gone', () => {
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1 } });
    assert.deepEqual(does({ session, turns: [turn] }), ['Admit']);
  });
});

describe('the steps of a suspension', () => {
  const status = {
    ...RUNNING_STATUS,
    suspendHandled: { id: 'r1', afterTurn: 1 },
    lastTurn: { name: 'a', index: 1, phase: 'Succeeded' as const },
  };
  const session = aSession({ spec: { suspendRequest: 'r1' }, status });
  const requested = { ...bound, session, memory: asked };
  test('a request is first written down with the last turn given', () => {
    const unseen = aSession({ spec: { suspendRequest: 'r1' }, status: RUNNING_STATUS });
    const turns = [aTurn({ status: { index: 3, phase: 'Succeeded' } })];
    assert.deepEqual(decide(aWorld({ ...bound, session: unseen, turns })).status.suspendHandled, {
      id: 'r1',
      afterTurn: 3,
    });
  });
  test('the runner is fenced and asked for its state first', () => {
    const decision = decide(aWorld({ ...bound, session }));
    assert.deepEqual(decision.actions, [{ do: 'SuspendRunner', snapshot: true }]);
    assert.equal(decision.status.phase, 'Suspending');
  });
  test('a runner that another leader has fenced is asked anew', () => {
    assert.deepEqual(does({ ...bound, session, link: fenced }), ['SuspendRunner']);
  });
  test('no step follows before the runner has said that it takes no turns', () => {
    assert.deepEqual(does({ ...requested, link: aLink({ suspendSent: true, snapshot }) }), []);
    assert.deepEqual(does({ ...requested, link: fenced }), ['VerifySuspension']);
  });
  test('without a kept state none is asked for', () => {
    const off = aSession({
      spec: { suspend: true, persistence: { state: false }, timeouts: { lifetime: '1h' } },
      status,
    });
    const overrides = ['agent.command', 'timeouts', 'persistence'] as const;
    const world = { ...bound, session: off, class: aClass({ overrides: [...overrides] }) };
    assert.deepEqual(decide(aWorld(world)).actions, [{ do: 'SuspendRunner', snapshot: false }]);
    const { snapshot: _, ...link } = fenced;
    assert.deepEqual(does({ ...world, memory: asked, link }), ['VerifySuspension']);
  });
  test('the pod is deleted only when the status has the state', () => {
    const memory = { suspension: { ...asked.suspension, verified: state } };
    const before = decide(aWorld({ ...requested, memory, link: fenced }));
    assert.deepEqual(before.actions, []);
    assert.deepEqual(before.status.state, state);
    const stored = aSession({ spec: { suspendRequest: 'r1' }, status: { ...status, state } });
    assert.deepEqual(does({ ...requested, session: stored, memory, link: fenced }), ['DeletePod']);
  });
  test('a later turn makes the request void and frees the runner', () => {
    const actions = does({ ...requested, link: fenced, turns: [aTurn({ name: 'b' })] });
    assert.deepEqual(actions, ['ResumeRunner', 'WriteTurn', 'StartTurn']);
  });
  test('so does one that nobody has taken in yet, unless it was meant for a former session', () => {
    const memory = { suspension: { ...asked.suspension, verified: 'Unchanged' as const } };
    const does = (turn: CachedTurn) => {
      const { actions } = decide(aWorld({ ...requested, memory, link: fenced, turns: [turn] }));
      return actions.map((action) => action.do);
    };
    assert.deepEqual(does(aTurn({ owner: null })), ['AdoptTurn', 'ResumeRunner']);
    assert.deepEqual(does(aTurn({ owner: null, age: 3600 })), ['WriteTurn', 'DeletePod']);
  });
  test('a request is not written down before a turn that came with it has its index', () => {
    const unseen = aSession({ spec: { suspendRequest: 'r1' }, status: RUNNING_STATUS });
    for (const owner of [null, unseen.metadata.uid]) {
      const { status } = decide(aWorld({ ...bound, session: unseen, turns: [aTurn({ owner })] }));
      assert.equal(status.suspendHandled, undefined);
    }
  });
  describe('a request', () => {
    const { podName: _, podUID: __, ...gone } = status;
    const noted = { id: 'r1', afterTurn: 1 };
    const approval = { id: 'a'.repeat(16), prompt: 'May I?', since: at(0) };
    const asks = aTurn({ status: { index: 1, phase: 'AwaitingApproval', approval } as TurnStatus });
    const decided = aTurn({
      status: {
        ...asks.status,
        approval: { ...approval, decided: { decision: 'Approve', approval: 'x', by: 'x', at: at(0) } },
      } as unknown as TurnStatus,
    });
    const queued = aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } });
    const handled = (status: SessionStatus, turns: CachedTurn[], world: WorldChange = {}) => {
      const session = aSession({ spec: { suspendRequest: 'r1' }, status: { ...status, suspendHandled: noted } });
      return decide(aWorld({ session, turns, ...world })).status.suspendHandled?.done;
    };
    const { lastTurn: ___, ...first } = gone;
    test('is done once the session has no pod, also while its turn asks', () => {
      assert.equal(handled(gone, []), true);
      assert.equal(handled(first, [asks]), true);
      assert.equal(handled(status, [], bound), undefined);
      const unseen = aSession({ spec: { suspendRequest: 'r1' }, status: { phase: 'Suspended', incarnation: 1 } });
      assert.deepEqual(decide(aWorld({ session: unseen })).status.suspendHandled, {
        id: 'r1',
        afterTurn: 0,
        done: true,
      });
    });
    test('is done by the write that lets go of the pod, also where the decision came as it went', () => {
      const going = { ...RUNNING_STATUS, phase: 'Suspending' as const };
      const memory = { confirmedGone: { podUID: POD_UID } };
      for (const turn of [asks, decided]) {
        const session = aSession({ spec: { suspendRequest: 'r1' }, status: { ...going, suspendHandled: noted } });
        const { status } = decide(aWorld({ session, turns: [turn], memory }));
        assert.deepEqual([status.podName, status.suspendHandled?.done], [undefined, true]);
      }
    });
    test('is not done while a turn that was given before it has yet to run, though there is no pod', () => {
      assert.equal(handled(first, [queued]), undefined);
      assert.equal(handled(first, [decided]), undefined);
      assert.equal(handled({ ...first, phase: 'Suspending' }, [queued]), undefined);
    });
    test('that is done takes no other pod, neither at the next question nor when the turn has ended', () => {
      const done = { ...RUNNING_STATUS, incarnation: 2, suspendHandled: { ...noted, done: true } };
      const session = aSession({ spec: { suspendRequest: 'r1' }, status: done });
      for (const turns of [[asks], []]) {
        assert.deepEqual(does({ session, pod: aPod(), link: aLink(), turns }), []);
      }
    });
    test('that is done does not start the session that never had a pod', () => {
      const status = { incarnation: 0, suspendHandled: { id: 'r1', afterTurn: 0, done: true } };
      const decision = decide(aWorld({ session: aSession({ spec: { suspendRequest: 'r1' }, status }) }));
      assert.deepEqual([decision.actions, decision.waiting, decision.status.phase], [[], false, 'Suspended']);
    });
    test('of another id suspends again', () => {
      const done = { ...status, suspendHandled: { ...noted, done: true } };
      const again = aSession({ spec: { suspendRequest: 'r2' }, status: done });
      assert.deepEqual(decide(aWorld({ ...bound, session: again })).status.suspendHandled, { id: 'r2', afterTurn: 1 });
    });
  });
  test('a hold lets the running turn end and keeps the others queued', () => {
    const held = aSession({ spec: { suspend: true }, status: RUNNING_STATUS });
    const turns = [runningTurn('a'), aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [] } })];
    const decision = decide(aWorld({ ...bound, session: held, link: aLink({ active: 't-a' }), turns }));
    assert.deepEqual(
      decision.actions.map((action) =>
        action.do === 'WriteTurn' ? [action.turn.metadata.name, action.status.phase] : action.do,
      ),
      [['b', 'Queued']],
    );
  });
  test('a hold gives up a pod that does not start, and ends no turn that is held', () => {
    const held = aSession({ spec: { suspend: true }, status: { ...RUNNING_STATUS, phase: 'Starting' } });
    const waits = aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [] } });
    const pending = { session: held, pod: aPod({ status: { phase: 'Pending' } }), turns: [waits] };
    const does = (world: WorldChange) => {
      const { actions } = decide(aWorld(world));
      return actions.map((action) =>
        'status' in action ? [action.turn.metadata.name, action.status.phase] : action.do,
      );
    };
    const link = aLink({ phase: 'Opening' });
    assert.deepEqual(does({ ...pending, link }), [['b', 'Queued'], 'CloseLink', 'DeletePod']);
    // An earlier leader may have bound it.
    const found = { ...pending, link: { ...link, fresh: false } };
    assert.deepEqual(does(found), [['b', 'Queued']]);
    const late = { ...found, pod: aPod({ status: { phase: 'Pending' }, age: 3_600 }) };
    assert.deepEqual(does(late), [['b', 'Queued'], 'CloseLink', 'DeletePod']);
    const turns = [runningTurn('a'), waits];
    assert.deepEqual(does({ ...late, turns }), [['b', 'Queued'], 'CloseLink', 'DeletePod']);
    const never = { ...late, link, turns };
    assert.deepEqual(does(never), [['b', 'Queued'], ['a', 'Failed'], 'CloseLink', 'DeletePod']);
  });
  test('a state that cannot be had aborts it, which is said and tried again later', () => {
    const refused = { n: 1, code: 'SnapshotFailed' as const, message: 'too large' };
    assert.deepEqual(does({ ...requested, link: { ...fenced, refused } }), ['AbortSuspension']);
    const problem = { reason: 'StateNotStored' as const, message: 'too large' };
    const suspensionFailed = { problem, count: 1, againAt: NOW + 60_000, generation: 1 };
    const waiting = decide(aWorld({ ...bound, session, memory: { suspensionFailed } }));
    assert.deepEqual([waiting.actions, waiting.wakeAt], [[], NOW + 60_000]);
    // A change of the session, perhaps to let it store more, ends the wait.
    const before = { suspensionFailed: { ...suspensionFailed, generation: 0 } };
    assert.deepEqual(does({ ...bound, session, memory: before }), ['SuspendRunner']);
    const condition = waiting.status.conditions?.find(({ type }) => type === 'StatePersisted');
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['False', 'StateNotStored', 'too large'],
    );
  });
  test('a state above maxState is named from the end of its turn until it is stored or its pod is gone', () => {
    const persisted = (status: SessionStatus) => {
      const { status: value, reason, message } = status.conditions?.find(({ type }) => type === 'StatePersisted') ?? {};
      return [value, reason, message];
    };
    const message = 'the state in BERTH_STATE_DIR has 51712 bytes as an archive; at most 20000 can be stored';
    const ending = { phase: 'Failed', reason: 'StateTooLarge', message } as const;
    const index = (number: number) => ({ status: { index: number } });
    const over = aTurn({ name: 'a', status: ended(runningTurn('a'), ending, NOW) });
    const first = decide(aWorld({ ...bound, turns: [over] })).status;
    assert.deepEqual(persisted(first), ['False', 'StateTooLarge', message]);
    const events = noteworthy(RUNNING_STATUS, first).map((event) => [event.reason, event.message]);
    assert.deepEqual(events, [['StateTooLarge', message]]);
    const later = (turns: CachedTurn[]) =>
      decide(aWorld({ ...bound, session: aSession({ status: first }), turns })).status;
    assert.deepEqual(persisted(later([])), ['False', 'StateTooLarge', message], 'whoever leads');
    const cancelled = aTurn({ status: { index: 2, phase: 'Cancelled' } });
    assert.deepEqual(persisted(later([cancelled])), ['False', 'StateTooLarge', message]);
    const smaller = { phase: 'Succeeded', reason: 'Succeeded', message: '', fields: { state } } as const;
    const fits = aTurn({ status: ended(runningTurn('b', index(2)), smaller, NOW) });
    assert.equal(persisted(later([fits]))[1], 'StateStored');
    const memory = { confirmedGone: { podUID: POD_UID } };
    const lost = decide(aWorld({ session: aSession({ status: { ...first, state } }), memory })).status;
    assert.deepEqual([lost.phase, persisted(lost)[1]], ['Suspended', 'StateStored']);
  });
  test('a state that could not be stored is not spoken of any more when its pod is gone', () => {
    const problem = { reason: 'StateNotStored' as const, message: 'full' };
    const suspensionFailed = { problem, count: 1, againAt: NOW + 60_000, generation: 1 };
    const memory = { suspensionFailed, confirmedGone: { podUID: POD_UID } };
    const { status } = decide(aWorld({ session: aSession({ status: { ...RUNNING_STATUS, state } }), memory }));
    assert.equal(status.conditions?.find(({ type }) => type === 'StatePersisted')?.reason, 'StateStored');
  });
  test('a state that does not come is waited for as long as timeouts.persist', () => {
    const link = aLink({ suspendSent: true, suspended: true });
    const waiting = decide(aWorld({ ...requested, link }));
    assert.deepEqual([waiting.actions, waiting.wakeAt], [[], NOW - 100 + 5 * 60_000]);
    const memory = { suspension: { podUID: POD_UID, askedAt: NOW - 5 * 60_000 } };
    assert.deepEqual(does({ ...requested, memory, link }), ['AbortSuspension']);
  });
  test('a session of one turn gives up its pod when the status says how the turn ended', () => {
    const one = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const turn = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded' } });
    const first = decide(aWorld({ ...bound, session: one, turns: [turn] }));
    assert.deepEqual(first.actions, []);
    assert.equal(first.status.phase, 'Finished');
    assert.equal(first.status.conditions?.find(({ type }) => type === 'Finished')?.reason, 'RunSucceeded');
    const after = aSession({ spec: { turns: 'One' }, status: first.status });
    assert.deepEqual(does({ ...bound, session: after }), ['DeletePod']);
  });
});
