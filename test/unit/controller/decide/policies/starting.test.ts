import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../../controller/decide/decide.ts';
import type { Draft } from '../../../../../controller/decide/draft.ts';
import { boundBefore } from '../../../../../controller/decide/policies/starting.ts';
import { boundPod } from '../../../../../controller/observed/bound-pod.ts';
import type { CachedSession } from '../../../../../controller/observed/world.ts';
import { queued } from '../../../../../controller/status/turn-status.ts';
import type { StoredPod } from '../../../../../core/kube/builtin.ts';
import {
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
} from '../../../../support/world.ts';

const condition = (type: 'Ready' | 'Suspended', status: 'True' | 'False', reason: string) => ({
  type,
  status,
  reason: reason as 'Ready',
  message: '',
  lastTransitionTime: new Date(NOW - 60_000).toISOString(),
  observedGeneration: 1,
});

describe('a pod was bound before, by what the status says', () => {
  for (const [conditions, was] of [
    [[], false],
    [[condition('Ready', 'False', 'Starting')], false],
    [[condition('Ready', 'True', 'Ready')], true],
    [[condition('Suspended', 'True', 'Suspended')], false],
    [[condition('Suspended', 'False', 'Suspending')], true],
  ] as [NonNullable<NonNullable<CachedSession['status']>['conditions']>, boolean][]) {
    const named =
      conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`).join(', ') || 'no condition';
    test(`${named}: ${was ? 'yes' : 'no'}`, () => {
      const session = aSession({ status: { ...RUNNING_STATUS, conditions } });
      const draft = { world: aWorld({ session, pod: aPod() }) } as unknown as Draft;
      assert.equal(boundBefore(draft, POD_UID), was);
      assert.equal(boundBefore(draft, 'another pod'), false);
    });
  }
});

describe('a pod that is gone, and that no status shows ready any more', () => {
  const conditions = [condition('Ready', 'False', 'Starting')];
  const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting', conditions } });
  const failures = (memory: object) =>
    decide(aWorld({ session, turns: [aTurn()], memory: { confirmedGone: { podUID: POD_UID }, ...memory } })).status
      .startFailures?.count;
  test('counts as no failed start where its runner was bound', () => {
    assert.equal(failures({ bound: { podUID: POD_UID } }), undefined);
  });
  test('counts as a failed start where only that of another pod was', () => {
    assert.equal(failures({}), 1);
    assert.equal(failures({ bound: { podUID: 'p-0' } }), 1);
  });
  test('is not tried again as a failed start while it is only ended', () => {
    const status = {
      phase: 'Failed',
      containerStatuses: [
        { name: 'session', ready: false, restartCount: 0, state: { terminated: { exitCode: 1, reason: 'Error' } } },
      ],
    } as const;
    const world = { session, turns: [aTurn()], pod: aPod({ status: status as never }) };
    const whys = (memory: object) =>
      decide(aWorld({ ...world, memory })).actions.flatMap((action) => (action.do === 'DeletePod' ? [action.why] : []));
    assert.deepEqual(whys({ bound: { podUID: POD_UID } }), ['its container ended']);
    assert.deepEqual(whys({}), ['its container ended before it took a turn']);
  });
});

describe('a pod whose runner is known to have been bound', () => {
  const unready = aSession({ status: RUNNING_STATUS });
  const ready = aSession({ status: { ...RUNNING_STATUS, conditions: [condition('Ready', 'True', 'Ready')] } });
  test('is the one of the link that was bound, or that was bound already', () => {
    assert.equal(boundPod({ session: unready, link: aLink({ bound: {} as never }) }), POD_UID);
    assert.equal(boundPod({ session: unready, link: aLink({ phase: 'Opening', resumed: true }) }), POD_UID);
  });
  test('is otherwise the one that the status shows ready', () => {
    assert.equal(boundPod({ session: unready, link: aLink({ phase: 'Opening' }) }), undefined);
    assert.equal(boundPod({ session: unready, link: undefined }), undefined);
    assert.equal(boundPod({ session: ready, link: undefined }), POD_UID);
  });
});

describe('a pod whose time to start is over', () => {
  const pod = aPod({ age: 601, status: { phase: 'Pending' } });
  const late = {
    session: aSession({ status: RUNNING_STATUS }),
    pod,
    turns: [aTurn()],
    link: aLink({ phase: 'Opening' }),
  };
  test('is read live before its turns are told that it did not start', () => {
    assert.deepEqual(does({ ...late, memory: {} }), ['ReadPod']);
    assert.ok(does({ ...late, memory: { podRead: { podUID: 'p-0' } } }).includes('ReadPod'));
    assert.deepEqual(does(late), ['WriteTurn', 'CloseLink', 'DeletePod']);
  });
  test('is not one that did not start where its runner was bound, though its link is open no more', () => {
    const running = { ...late, pod: aPod({ age: 601 }), turns: [runningTurn('t')] };
    const was = { phase: 'Opening', bound: {} as NonNullable<ReturnType<typeof aLink>['bound']> } as const;
    assert.ok(!does({ ...running, link: aLink({ ...was, openedAt: NOW - 29_000 }) }).includes('WriteTurn'));
  });
});

describe('a turn that an earlier leader wrote for a pod, of which no status says that it was bound', () => {
  const conditions = [condition('Ready', 'False', 'Starting')];
  const session = aSession({
    spec: { timeouts: { start: '1s' } },
    status: { ...RUNNING_STATUS, phase: 'Starting', conditions },
  });
  const containers = (state: NonNullable<NonNullable<StoredPod['status']>['containerStatuses']>[number]['state']) => ({
    containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state: state ?? {} }],
  });
  const silent = aPod({ age: 60, status: { phase: 'Running', ...containers({ running: {} }) } });
  const over = aPod({ age: 60, status: { phase: 'Failed', ...containers({ terminated: { exitCode: 1 } }) } });
  const unheard = aLink({ phase: 'Opening', fresh: false, openedAt: NOW - 31_000 });
  const behind = aTurn({ name: 'behind', status: queued(aTurn(), 2, 'Queued', NOW) });
  const turn = runningTurn('first', { spec: { retry: { maxAttempts: 2 } } });
  const asks = { id: 'r', prompt: '?', since: new Date(NOW).toISOString(), process: 'Alive', incarnation: 1 } as const;
  const asked = runningTurn('first', {
    status: { phase: 'AwaitingApproval', approval: { ...asks, seq: 4, ranMs: 5 } },
  });
  const memory = { podRead: { podUID: POD_UID }, logRead: { podUID: POD_UID } };
  const outcomes = (pod: StoredPod, link = unheard, first = turn) =>
    decide(aWorld({ session, pod, link, turns: [first, behind], memory })).actions.map((action) =>
      action.do === 'WriteTurn'
        ? [action.turn.metadata.name, action.status.phase, action.status.error?.code]
        : action.do === 'DeletePod'
          ? action.why
          : action.do,
    );
  const failed = ['behind', 'Failed', 'StartFailed'];

  test('does not fail at the start of a runner that does not answer: its outcome is that of a lost pod', () => {
    assert.deepEqual(outcomes(silent), [failed, 'CloseLink', 'its runner did not answer']);
    const gone = decide(aWorld({ session, turns: [turn], memory: { ...memory, confirmedGone: { podUID: POD_UID } } }));
    const [lost] = gone.actions.flatMap((action) => (action.do === 'WriteTurn' ? [action.status] : []));
    assert.deepEqual(
      [lost?.phase, lost?.conditions?.find(({ type }) => type === 'Finished')?.reason],
      ['Queued', 'Retrying'],
    );
  });
  test('is lost with a container that ended by itself, and tried again where it may be', () => {
    const rest = [failed, 'CloseLink', 'its container ended before it took a turn'];
    assert.deepEqual(outcomes(over), [['first', 'Queued', undefined], ...rest]);
    assert.deepEqual(outcomes(over, unheard, runningTurn('first')), [['first', 'Failed', 'PodLost'], ...rest]);
  });
  test('goes on waiting for its decision', () => {
    for (const pod of [silent, over])
      assert.deepEqual(outcomes(pod, unheard, asked).slice(0, 2), [failed, 'CloseLink']);
  });
  test('fails at the start where its runner certainly never got it', () => {
    const fresh = { ...unheard, fresh: true };
    for (const pod of [silent, over])
      assert.deepEqual(outcomes(pod, fresh).slice(0, 2), [['first', 'Failed', 'StartFailed'], failed]);
  });
});

test('a pod that was seen and is gone is not made a second time, though no status names it', () => {
  const { podUID: _, ...owned } = RUNNING_STATUS;
  const session = aSession({ status: owned });
  assert.deepEqual(does({ session, turns: [aTurn()] }), ['CreatePod']);
  assert.deepEqual(does({ session, turns: [aTurn()], memory: { lastPod: aPod() } }), ['ConfirmGone']);
});

describe('a session does not start', () => {
  test('for a turn that came after its end', () => {
    const lastTurn = { name: 'first', index: 1, phase: 'Succeeded' } as const;
    const session = aSession({ spec: { turns: 'One' }, status: { phase: 'Finished', incarnation: 1, lastTurn } });
    assert.ok(!does({ session, turns: [aTurn()] }).includes('Admit'));
  });

  const waits = { free: false, group: 'team/g', limit: 1, running: ['other'], unknown: 0 } as never;
  const queued = { session: aSession({ status: { phase: 'Suspended', incarnation: 1 } }), turns: [aTurn()] };
  test('while its group is full, and does not stand in the queue of the cluster', () => {
    const decision = decide(
      aWorld({ ...queued, group: waits, slot: { waiting: 'AtCapacity', message: 'm' } as never }),
    );
    assert.equal(decision.waiting, false);
  });
  test('while nobody knows what runs, and queues though its group is full', () => {
    const slot = { waiting: 'CapacityUnknown', message: 'm' } as never;
    const decision = decide(aWorld({ ...queued, group: waits, slot }));
    assert.equal(decision.waiting, true);
  });
});

describe('a decision of a person', () => {
  const asking = runningTurn('t', {
    status: {
      phase: 'AwaitingApproval',
      approval: { id: 'r', prompt: '?', since: new Date(NOW).toISOString() } as never,
    },
  });
  const approval = {
    metadata: { name: 'a', namespace: 'team', uid: 'a', creationTimestamp: new Date(NOW).toISOString(), generation: 1 },
    spec: { turn: 't', requestId: 'r', decision: 'Approve' },
    responseBytes: 0,
  } as never;
  const world = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), turns: [asking], approvals: [approval] };
  test('is consumed for a runner that is bound', () => {
    assert.ok(does({ ...world, link: aLink() }).includes('Consume'));
  });
  test('waits while the link is still that of another pod', () => {
    assert.ok(!does({ ...world, link: aLink({ podUID: 'p-0' }) }).includes('Consume'));
  });
});
