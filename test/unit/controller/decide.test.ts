import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decide } from '../../../controller/decide/decide.ts';
import type { Action } from '../../../controller/decide/draft.ts';
import type { TurnStatus } from '../../../core/resources/turn.ts';
import {
  aClass,
  aLink,
  aPod,
  aResult,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
} from '../../support/world.ts';

const does = (world: Parameters<typeof aWorld>[0]) => decide(aWorld(world)).actions.map((action) => action.do);
const written = (actions: Action[]): TurnStatus[] =>
  actions.flatMap((action) => (action.do === 'WriteTurn' ? [action.status] : []));
const bound = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink() };

describe('a place and a pod', () => {
  test('a new session takes the next incarnation at once', () => {
    assert.deepEqual(does({}), ['OwnIncarnation']);
  });
  test('a new session that is held takes none', () => {
    const decision = decide(aWorld({ session: aSession({ spec: { suspend: true } }) }));
    assert.deepEqual(decision.actions, []);
    assert.equal(decision.status.phase, 'Suspended');
  });
  test('without a place the session waits and says since when and why', () => {
    const decision = decide(aWorld({ place: { waiting: 'AtCapacity', message: 'full' } }));
    assert.equal(decision.waiting, true);
    assert.equal(decision.status.phase, 'Queued');
    assert.deepEqual(decision.status.queue, { since: new Date(NOW).toISOString(), reason: 'AtCapacity' });
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Admitted')?.message, 'full');
  });
  test('the pod is created only after the incarnation is owned', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    assert.deepEqual(does({ session: aSession({ status: owned }) }), ['CreatePod']);
  });
  test('a pod that a committed turn names is not created a second time', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const turn = aTurn({ status: { index: 1, phase: 'Succeeded', incarnation: 1, podUID: POD_UID } });
    assert.deepEqual(does({ session: aSession({ status: owned }), turns: [turn] }), ['ConfirmGone']);
  });
  test('a suspended session starts only for a turn that is not held', () => {
    const status = { phase: 'Suspended', incarnation: 1 } as const;
    assert.deepEqual(does({ session: aSession({ status }) }), []);
    assert.deepEqual(does({ session: aSession({ status }), turns: [aTurn()] }), ['OwnIncarnation']);
    const held = decide(aWorld({ session: aSession({ status, spec: { suspend: true } }), turns: [aTurn()] }));
    assert.deepEqual(
      written(held.actions).map(({ phase, conditions }) => [phase, conditions?.[0]?.reason]),
      [['Queued', 'Held']],
    );
  });
  test('under a deletionTimestamp nothing is started', () => {
    assert.deepEqual(does({ session: aSession({ deleting: true }), turns: [aTurn()] }), []);
  });
  test('pods of earlier incarnations are deleted', () => {
    const stray = aPod({ name: 's-old-0', uid: 'p-0', incarnation: 0 });
    assert.deepEqual(does({ ...bound, strays: [stray] }), ['DeletePod']);
  });
});

describe('a turn on its way to the runner', () => {
  test('is written Running with the pod before it is sent', () => {
    assert.deepEqual(does({ ...bound, turns: [aTurn()] }), ['WriteTurn', 'StartTurn']);
  });
  test('is written Running while the pod still starts, and not sent', () => {
    const decision = decide(aWorld({ ...bound, link: aLink({ phase: 'Opening' }), turns: [aTurn()] }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['WriteTurn'],
    );
    assert.equal(written(decision.actions)[0]?.podUID, POD_UID);
  });
  test('goes out together with the binding', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Unbound' }), turns: [runningTurn('a')] }), [
      'Bind',
      'StartTurn',
    ]);
  });
  test('waits for the one before it', () => {
    const decision = decide(
      aWorld({ ...bound, link: aLink({ active: 't-a' }), turns: [aTurn({ name: 'b' }), runningTurn('a')] }),
    );
    assert.deepEqual(
      written(decision.actions).map(({ phase, index }) => [phase, index]),
      [['Queued', 2]],
    );
  });
  test('is sent again when the runner of its living pod does not have it', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ sent: new Set(['t-a']) }), turns: [runningTurn('a')] }), [
      'StartTurn',
    ]);
  });
  test('is not bound before the status has the last committed state', () => {
    const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 4, inline: 'AA==' };
    const ended = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', state } });
    const decision = decide(aWorld({ ...bound, link: aLink({ phase: 'Unbound' }), turns: [ended] }));
    assert.deepEqual(decision.actions, []);
    assert.deepEqual(decision.status.state, state);
  });
  test('several turns without an index get theirs in the order of creation', () => {
    const turns = [aTurn({ name: 'late', age: 1 }), aTurn({ name: 'early', age: 9 })];
    const decision = decide(aWorld({ ...bound, turns }));
    const indexes = decision.actions.flatMap((action) =>
      action.do === 'WriteTurn' ? [[action.turn.metadata.name, action.status.index]] : [],
    );
    assert.deepEqual(indexes, [
      ['early', 1],
      ['late', 2],
    ]);
  });
});

describe('turns that cannot run', () => {
  const refusals: [string, Parameters<typeof aWorld>[0], string][] = [
    ['cancelled while queued', { turns: [aTurn({ spec: { cancel: true } })] }, 'Cancelled'],
    ['with too large an input', { turns: [aTurn({ bytes: 131_073 })] }, 'InputTooLarge'],
    [
      'second of a session that takes one',
      { session: aSession({ spec: { turns: 'One' } }), turns: [aTurn({ age: 9 }), aTurn({ age: 1 })] },
      'SessionFinished',
    ],
    ['older than its session', { turns: [aTurn({ owner: null, age: 600 })] }, 'SessionReplaced'],
    [
      'of a session that sets what its class forbids',
      { session: aSession({ spec: { image: 'x' } }), turns: [aTurn()] },
      'NotAllowed',
    ],
    ['of a session without a command', { session: aSession({ spec: { agent: {} } }), turns: [aTurn()] }, 'InvalidSpec'],
    ['whose class has not come for ten minutes', { class: undefined, turns: [aTurn({ age: 601 })] }, 'ClassNotFound'],
  ];
  for (const [what, world, reason] of refusals) {
    test(`a turn ${what} ends with ${reason}`, () => {
      const reasons = written(decide(aWorld(world)).actions)
        .filter((status) => status.conditions?.some(({ type, status }) => type === 'Finished' && status === 'True'))
        .map((status) => status.conditions?.find(({ type }) => type === 'Finished')?.reason);
      assert.deepEqual(reasons, [reason]);
    });
  }
  test('an ownerless turn as old as its session is adopted', () => {
    assert.deepEqual(does({ turns: [aTurn({ owner: null, age: 60 })] })[0], 'AdoptTurn');
  });
  test('a turn of another session with the same name is left alone', () => {
    assert.deepEqual(
      does({
        session: aSession({ status: { phase: 'Suspended', incarnation: 1 } }),
        turns: [aTurn({ owner: 'other' })],
      }),
      [],
    );
  });
  test('a turn waits for a class that may still come', () => {
    const decision = decide(aWorld({ class: undefined, turns: [aTurn()] }));
    assert.deepEqual(
      written(decision.actions).map(({ phase }) => phase),
      ['Queued'],
    );
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Admitted')?.reason, 'ClassNotFound');
    assert.equal(decision.wakeAt, NOW + 590_000);
  });
});

describe('a result', () => {
  const delivery = (change = {}) => ({ result: aResult('t-a', change) });
  test('is committed for the turn that runs', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ delivery: delivery() }), turns: [runningTurn('a')] }), ['Commit']);
  });
  test('of another attempt is acknowledged and has no other effect', () => {
    const world = {
      ...bound,
      link: aLink({ active: 't-a', delivery: delivery({ attempt: 2 }) }),
      turns: [runningTurn('a')],
    };
    assert.deepEqual(does(world), ['Acknowledge']);
  });
  test('counts in the session once', () => {
    const turn = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded', output: 'x' } });
    const first = decide(aWorld({ ...bound, turns: [turn] })).status;
    assert.deepEqual(first.turns, { total: 1, succeeded: 1, failed: 0 });
    assert.deepEqual(first.lastTurn, { name: 'a', index: 1, phase: 'Succeeded', output: 'x' });
    const again = decide(aWorld({ ...bound, session: aSession({ status: first }), turns: [turn] })).status;
    assert.deepEqual(again.turns, first.turns);
  });
  test('of a turn that was cancelled in the queue counts after those before it', () => {
    const cancelled = aTurn({ name: 'b', status: { index: 2, phase: 'Cancelled' } });
    const status = decide(
      aWorld({ ...bound, link: aLink({ active: 't-a' }), turns: [runningTurn('a'), cancelled] }),
    ).status;
    assert.equal(status.turns?.total, 0);
  });
});

describe('what a new leader does not know yet', () => {
  const opening = aLink({ phase: 'Opening', fresh: false });
  test('a turn of a pod that it has not heard of is not taken for one that never ran', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const world = { session: aSession({ status: RUNNING_STATUS }), memory, link: opening, turns: [runningTurn('a')] };
    assert.equal(written(decide(aWorld(world)).actions)[0]?.phase, 'Failed');
  });
  test('a cancelled turn of such a pod is not ended before the runner was asked', () => {
    const turn = runningTurn('a', { spec: { cancel: true } });
    const session = aSession({ status: { ...RUNNING_STATUS, conditions: [] } });
    assert.deepEqual(does({ ...bound, session, link: opening, turns: [turn] }), []);
  });
  test('a pod of a later incarnation than the cache shows is left alone', () => {
    const later = aPod({ name: 's-later', uid: 'p-2', incarnation: 2 });
    assert.deepEqual(does({ ...bound, strays: [later] }), []);
  });
});

describe('turns that end out of order', () => {
  const refused = (name: string) => aTurn({ name, status: { index: 2, phase: 'Cancelled' } });
  test('do not keep the first one from being bound', () => {
    const turns = [runningTurn('a'), refused('b')];
    assert.deepEqual(does({ ...bound, link: aLink({ phase: 'Unbound' }), turns }), ['Bind', 'StartTurn']);
  });
  test('do not finish a session that takes one turn, nor change how it finished', () => {
    const one = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const first = decide(
      aWorld({ ...bound, session: one, link: aLink({ active: 't-a' }), turns: [runningTurn('a'), refused('b')] }),
    );
    assert.notEqual(first.status.phase, 'Finished');
    const done = { ...RUNNING_STATUS, lastTurn: { name: 'a', index: 1, phase: 'Succeeded' as const } };
    const later = decide(
      aWorld({ session: aSession({ spec: { turns: 'One' }, status: done }), turns: [refused('b')] }),
    );
    assert.equal(later.status.lastTurn?.name, 'a');
  });
});

describe('what must not get stuck', () => {
  test('a runner that works on a turn that is gone is stopped, then given up with its pod', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-gone' }) }), ['CancelTurn']);
    const cancelSent = { turn: 't-gone', at: NOW - 21_000 };
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-gone', cancelSent }) }), ['DeletePod']);
  });
  test('a state that cannot be had aborts the suspension, which is tried again later', () => {
    const held = aSession({ spec: { suspend: true }, status: RUNNING_STATUS });
    const refused = { n: 1, code: 'SnapshotFailed' as const, message: 'too large' };
    assert.deepEqual(does({ ...bound, session: held, link: aLink({ suspendSent: true, refused }) }), [
      'AbortSuspension',
    ]);
    const waiting = decide(aWorld({ ...bound, session: held, memory: { suspendAgainAt: NOW + 60_000 } }));
    assert.deepEqual([waiting.actions, waiting.wakeAt], [[], NOW + 60_000]);
  });
  test('a pod that the API server forbids fails the turns and frees the place', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const memory = { startProblem: { reason: 'PodForbidden' as const, message: 'violates PodSecurity' } };
    const decision = decide(aWorld({ session: aSession({ status: owned }), memory, turns: [aTurn()] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodForbidden');
    assert.equal(decision.status.podName, undefined);
  });
  test('a container that is killed before it is bound is tried again with growing delay, and not for ever', () => {
    const state = { terminated: { exitCode: 137, reason: 'OOMKilled' } };
    const pod = aPod({
      status: { phase: 'Failed', containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state }] },
    });
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const world = {
      session: aSession({ status: { ...owned, phase: 'Starting' } }),
      pod,
      link: aLink({ phase: 'Opening' }),
      turns: [runningTurn('a')],
    };
    const logRead = { podUID: POD_UID };
    const again = decide(aWorld({ ...world, memory: { logRead } }));
    assert.equal(written(again.actions)[0]?.phase, 'Queued');
    assert.ok(again.actions.some((action) => action.do === 'NoteFailedStart'));
    const last = decide(aWorld({ ...world, memory: { logRead, failedStarts: { count: 3, at: NOW } } }));
    assert.match(written(last.actions)[0]?.error?.message ?? '', /137.*OOMKilled/);
  });
});

describe('a lost pod', () => {
  const status = RUNNING_STATUS;
  test('counts as lost only after live reads', () => {
    assert.deepEqual(does({ session: aSession({ status }), turns: [runningTurn('a')] }), ['ConfirmGone']);
  });
  test('makes the running turn PodLost and lets go of the pod', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(aWorld({ session: aSession({ status }), memory, turns: [runningTurn('a')] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodLost');
    assert.equal(decision.status.podName, undefined);
  });
  test('that never saw the turn puts it back into the queue without an attempt', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(
      aWorld({ session: aSession({ status }), memory, link: aLink({ phase: 'Opening' }), turns: [runningTurn('a')] }),
    );
    const [turn] = written(decision.actions);
    assert.deepEqual([turn?.phase, turn?.attempt, turn?.podUID], ['Queued', undefined, undefined]);
  });
  test('that an earlier leader may have sent the turn to is not taken for one that never saw it', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(
      aWorld({ session: aSession({ status }), memory, link: aLink({ resumed: true }), turns: [runningTurn('a')] }),
    );
    assert.equal(written(decision.actions)[0]?.phase, 'Failed');
  });
  test('whose container ended is asked for its log before the turn is given up', () => {
    const ended = aPod({ status: { phase: 'Failed' } });
    const link = aLink({ sent: new Set(['t-a']) });
    assert.deepEqual(does({ ...bound, link, pod: ended, turns: [runningTurn('a')] }), ['ReadLog']);
    const memory = { logRead: { podUID: POD_UID } };
    const decision = decide(aWorld({ ...bound, link, pod: ended, memory, turns: [runningTurn('a')] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodLost');
  });
  test('that ended by itself before it was bound fails the turns with what the kubelet says', () => {
    const state = { terminated: { exitCode: 127, reason: 'StartError', message: 'no such file' } };
    const pod = aPod({
      status: { phase: 'Failed', containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state }] },
    });
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const world = {
      session: aSession({ status: { ...owned, phase: 'Starting' } }),
      pod,
      link: aLink({ phase: 'Opening' }),
      memory: { logRead: { podUID: POD_UID } },
    };
    const decision = decide(aWorld({ ...world, turns: [runningTurn('a')] }));
    assert.match(written(decision.actions)[0]?.error?.message ?? '', /127.*no such file/);
    assert.equal(decision.status.conditions?.find(({ type }) => type === 'Ready')?.reason, 'StartFailed');
  });
  test('that does not answer is deleted after the patience has ended', () => {
    assert.deepEqual(does({ ...bound, link: aLink({ silentSince: NOW - 31_000 }) }), ['DeletePod']);
    assert.equal(decide(aWorld({ ...bound, link: aLink({ silentSince: NOW - 29_000 }) })).wakeAt, NOW + 1000);
  });
});

describe('clocks', () => {
  test('a pod that is not bound within timeouts.start is given up with the reason that Kubernetes gives', () => {
    const waiting = { reason: 'ErrImagePull', message: 'no such image' };
    const pod = aPod({
      age: 601,
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state: { waiting } }],
      },
    });
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const world = {
      session: aSession({ status: { ...owned, phase: 'Starting' } }),
      pod,
      link: aLink({ phase: 'Opening' }),
    };
    const decision = decide(aWorld({ ...world, turns: [runningTurn('a')] }));
    assert.match(written(decision.actions)[0]?.error?.message ?? '', /no such image/);
    assert.ok(decision.actions.some((action) => action.do === 'DeletePod'));
  });
  test('a turn past its time-out and grace is ended and its pod deleted', () => {
    const started = { turn: 't-a', at: new Date(NOW - 30 * 60_000 - 21_000).toISOString() };
    const decision = decide(aWorld({ ...bound, link: aLink({ started, active: 't-a' }), turns: [runningTurn('a')] }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['DeletePod', 'WriteTurn'],
    );
    assert.equal(written(decision.actions)[0]?.phase, 'TimedOut');
  });
  test('a running turn that is cancelled is cancelled by its runner', () => {
    const turn = runningTurn('a', { spec: { cancel: true } });
    assert.deepEqual(does({ ...bound, link: aLink({ active: 't-a', sent: new Set(['t-a']) }), turns: [turn] }), [
      'CancelTurn',
    ]);
  });
  test('a turn shows in the session once it has run a second', () => {
    const at = (ms: number) => new Date(NOW - ms).toISOString();
    const status = (ms: number) =>
      decide(
        aWorld({
          ...bound,
          link: aLink({ active: 't-a', started: { turn: 't-a', at: at(ms) } }),
          turns: [runningTurn('a')],
        }),
      ).status;
    assert.equal(status(900).currentTurn, undefined);
    assert.equal(status(1000).currentTurn, 'a');
    assert.equal(status(1000).phase, 'Running');
  });
});

describe('suspension', () => {
  const asked = {
    ...RUNNING_STATUS,
    suspendHandled: { id: 'r1', afterTurn: 1 },
    lastTurn: { name: 'a', index: 1, phase: 'Succeeded' as const },
  };
  const session = aSession({ spec: { suspendRequest: 'r1' }, status: asked });
  test('a request is first written down with the last turn given', () => {
    const status = decide(
      aWorld({
        ...bound,
        session: aSession({ spec: { suspendRequest: 'r1' }, status: RUNNING_STATUS }),
        turns: [aTurn({ status: { index: 3, phase: 'Succeeded' } })],
      }),
    ).status;
    assert.deepEqual(status.suspendHandled, { id: 'r1', afterTurn: 3 });
  });
  test('the runner is fenced and asked for its state first', () => {
    const decision = decide(aWorld({ ...bound, session }));
    assert.deepEqual(
      decision.actions.map((action) => action.do),
      ['SuspendRunner'],
    );
    assert.equal(decision.status.phase, 'Suspending');
  });
  test('the state handed over is verified before the pod is deleted', () => {
    const snapshot = {
      seq: 9,
      kind: 'state' as const,
      message: { digest: 'd', keyId: 'k', bytes: 1 },
      binary: Buffer.alloc(1),
    };
    assert.deepEqual(does({ ...bound, session, link: aLink({ suspendSent: true, snapshot }) }), ['VerifySuspension']);
  });
  test('the pod is deleted only when the status has the state', () => {
    const state = { digest: 'a'.repeat(64), keyId: 'k', bytes: 1, incarnation: 1, seq: 9, inline: 'AA==' };
    const memory = { suspension: { podUID: POD_UID, verified: state } };
    const before = decide(aWorld({ ...bound, session, memory, link: aLink({ suspendSent: true }) }));
    assert.deepEqual(before.actions, []);
    assert.deepEqual(before.status.state, state);
    const stored = aSession({ spec: { suspendRequest: 'r1' }, status: { ...asked, state } });
    assert.deepEqual(does({ ...bound, session: stored, memory, link: aLink({ suspendSent: true }) }), ['DeletePod']);
  });
  test('a later turn makes the request void and frees the runner', () => {
    const actions = does({ ...bound, session, link: aLink({ suspendSent: true }), turns: [aTurn({ name: 'b' })] });
    assert.deepEqual(actions, ['ResumeRunner', 'WriteTurn', 'StartTurn']);
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
  test('a session of one turn gives up its pod when the status says how the turn ended', () => {
    const one = aSession({ spec: { turns: 'One' }, status: RUNNING_STATUS });
    const turn = aTurn({ name: 'a', status: { index: 1, phase: 'Succeeded' } });
    const first = decide(aWorld({ ...bound, session: one, turns: [turn] }));
    assert.deepEqual(first.actions, []);
    assert.equal(first.status.phase, 'Finished');
    assert.equal(first.status.conditions?.find(({ type }) => type === 'Finished')?.reason, 'RunSucceeded');
    assert.deepEqual(does({ ...bound, session: aSession({ spec: { turns: 'One' }, status: first.status }) }), [
      'DeletePod',
    ]);
  });
});

describe('a class', () => {
  const message = (world: Parameters<typeof aWorld>[0]) =>
    decide(aWorld(world)).status.conditions?.find(({ type }) => type === 'Admitted')?.message ?? '';
  test('names the field that it does not allow', () => {
    assert.match(message({ session: aSession({ spec: { image: 'x' } }) }), /^spec\.image: /);
  });
  test('names the Secret that it does not allow', () => {
    const env = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'other', key: 'k' } } }];
    assert.match(
      message({ session: aSession({ spec: { agent: { command: ['a'], env } } }) }),
      /spec\.agent\.env\[0\]\.valueFrom\.secretKeyRef\.name: .*"other"/,
    );
  });
  test('names the ceiling of a time-out', () => {
    const session = aSession({ spec: { timeouts: { turn: '2h' } } });
    assert.match(message({ session, class: aClass({ maxTimeouts: { turn: '1h' } }) }), /spec\.timeouts\.turn: 2h .*1h/);
  });
});
