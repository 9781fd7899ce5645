import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Action } from '../../../../controller/decide/actions.ts';
import { decide } from '../../../../controller/decide/decide.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import type { StoredPod } from '../../../../core/kube/builtin.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import {
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
  reasonOf,
  runningTurn,
  SESSION_UID,
  written,
} from '../../../support/world.ts';

const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const names = (actions: Action[]) => actions.map((action) => action.do);
const failed = (actions: Action[]) => written(actions).filter(({ phase }) => phase === 'Failed');
const bound = { session: aSession({ status: RUNNING_STATUS }), pod: aPod(), link: aLink() };
const sent = aLink({ active: 't-a', sent: new Set(['t-a']) });
const terminated = (exitCode: number, reason: string, message?: string): NonNullable<StoredPod['status']> => {
  const state = { terminated: { exitCode, reason, ...(message ? { message } : {}) } };
  return { phase: 'Failed', containerStatuses: [{ name: 'session', ready: false, restartCount: 0, state }] };
};
const drained: NonNullable<StoredPod['status']> = {
  phase: 'Running',
  conditions: [
    { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' },
  ],
};
const retry = { retry: { maxAttempts: 3 } };

describe('a turn whose pod is lost', () => {
  const confirmedGone = { podUID: POD_UID };
  const session = aSession({ status: RUNNING_STATUS });

  test('over its memory limit fails as OOMKilled, with what to do, and is not tried again', () => {
    const world = { ...bound, link: sent, pod: aPod({ status: terminated(137, 'OOMKilled') }) };
    const turns = [runningTurn('a', { spec: retry })];
    const [turn] = written(decide(aWorld({ ...world, memory: { logRead: confirmedGone }, turns })).actions);
    assert.deepEqual([turn?.phase, turn?.error?.code], ['Failed', 'OOMKilled']);
    assert.match(turn?.error?.message ?? '', /limit of 1Gi.*raise resources\.limits\.memory/);
  });
  test('to a drain fails as Evicted, also when the pod has gone since', () => {
    const memory = { confirmedGone, lastPod: aPod({ status: drained, deleting: true }) };
    const decision = decide(aWorld({ session, memory, link: sent, turns: [runningTurn('a')] }));
    assert.equal(written(decision.actions)[0]?.error?.code, 'Evicted');
    assert.match(written(decision.actions)[0]?.error?.message ?? '', /kubectl drain.*give the turn again/);
    assert.equal(decision.status.podName, undefined);
  });
  test('that Berth itself gave up is told why', () => {
    const why = 'its runner does not answer';
    const memory = {
      confirmedGone,
      deletionPending: { podUID: POD_UID, why, accepted: true },
      lastPod: aPod({ deleting: true }),
    };
    const [turn] = written(decide(aWorld({ session, memory, link: sent, turns: [runningTurn('a')] })).actions);
    assert.equal(turn?.error?.code, 'PodLost');
    assert.match(turn?.error?.message ?? '', /deleted by Berth \(its runner does not answer\).*give the turn again/);
  });
  test('is queued again with its attempt counted while attempts remain', () => {
    const memory = { confirmedGone };
    const turns = [runningTurn('a', { spec: retry, status: { inputDigest: 'd'.repeat(64), startedAt: at(-5) } })];
    const [turn] = written(decide(aWorld({ session, memory, link: sent, turns })).actions);
    assert.deepEqual(
      [turn?.phase, turn?.attempt, turn?.index, turn?.inputDigest, turn?.podUID, turn?.startedAt],
      ['Queued', 1, 1, 'd'.repeat(64), undefined, undefined],
    );
    assert.deepEqual([reasonOf(turn!, 'Finished'), reasonOf(turn!, 'Running')], ['Retrying', 'PodLost']);
  });
  test('is lost when its attempts are used up, or when it was cancelled', () => {
    const memory = { confirmedGone };
    for (const turn of [
      runningTurn('a', { spec: retry, status: { attempt: 3 } }),
      runningTurn('a', { spec: { ...retry, cancel: true } }),
      runningTurn('a'),
    ]) {
      const [status] = written(decide(aWorld({ session, memory, link: sent, turns: [turn] })).actions);
      assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'PodLost']);
    }
  });
  test('before a runner saw its second attempt has still made one', () => {
    const memory = { confirmedGone };
    const turns = [runningTurn('a', { spec: retry, status: { attempt: 2 } })];
    const [turn] = written(decide(aWorld({ session, memory, link: aLink({ phase: 'Opening' }), turns })).actions);
    assert.deepEqual([turn?.phase, turn?.attempt], ['Queued', 1]);
  });
});

describe('the next attempt', () => {
  const lost = (attempt: number, secondsAgo: number, change: object = {}) =>
    aTurn({
      name: 'a',
      spec: retry,
      status: {
        index: 1,
        phase: 'Queued',
        attempt,
        inputDigest: 'd'.repeat(64),
        conditions: [
          { type: 'Running', status: 'False', reason: 'PodLost', message: '', lastTransitionTime: at(-secondsAgo) },
          { type: 'Finished', status: 'False', reason: 'Retrying', message: '', lastTransitionTime: at(-60) },
        ],
        ...change,
      },
    });
  const suspended = aSession({ status: { phase: 'Suspended', incarnation: 1 } });

  test('waits twice as long after each one that was lost', () => {
    const waits = [1, 2, 3, 7, 9].map(
      (attempt) => (decide(aWorld({ session: suspended, turns: [lost(attempt, 0)] })).wakeAt - NOW) / 1000,
    );
    assert.deepEqual(waits, [1, 2, 4, 60, 60]);
  });
  test('is not begun in a pod that is there before its time either', () => {
    const early = decide(aWorld({ ...bound, turns: [lost(2, 1)] }));
    assert.deepEqual([names(early.actions), early.wakeAt], [[], NOW + 1000]);
  });
  test('is the next one in number, with the same input, before the turns behind it', () => {
    const behind = aTurn({ name: 'b', status: { index: 2, phase: 'Queued', conditions: [] } });
    const actions = decide(aWorld({ ...bound, turns: [behind, lost(2, 10)] })).actions;
    const begun = written(actions).find(({ phase }) => phase === 'Running');
    assert.deepEqual([begun?.attempt, begun?.index, begun?.inputDigest], [3, 1, 'd'.repeat(64)]);
  });
  test('of a turn whose input was changed since is not made', () => {
    const [status] = written(
      decide(aWorld({ ...bound, turns: [lost(1, 10, { inputDigest: 'e'.repeat(64) })] })).actions,
    );
    assert.deepEqual([status?.phase, status?.error?.code], ['Failed', 'InputChanged']);
  });
  test('that was written Running and not given yet is not given another input either', () => {
    const turns = [runningTurn('a', { status: { inputDigest: 'e'.repeat(64) } })];
    const [status] = written(decide(aWorld({ ...bound, turns })).actions);
    assert.equal(status?.error?.code, 'InputChanged');
    assert.deepEqual(does({ ...bound, turns, link: sent }), [], 'a runner that has it goes on');
  });
  test('is called off by a cancellation', () => {
    const turn = lost(1, 0);
    const turns = [{ ...turn, spec: { ...turn.spec, cancel: true } }];
    assert.equal(written(decide(aWorld({ session: suspended, turns })).actions)[0]?.phase, 'Cancelled');
  });
});

describe('a runner that was told to stop while a turn ran', () => {
  const delivery = {
    result: aResult('t-a', { outcome: 'Failed', error: { code: 'PodLost', message: 'the pod was told to stop' } }),
  };
  const link = aLink({ phase: 'Ended', active: 't-a', sent: new Set(['t-a']), delivery });
  const turns = [runningTurn('a')];

  test('is asked why only once Kubernetes can have said so', () => {
    const early = decide(aWorld({ ...bound, link, turns }));
    assert.deepEqual([names(early.actions), early.wakeAt > NOW], [[], true]);
    const late = { result: { ...delivery.result, message: { ...delivery.result.message, finishedAt: at(-16) } } };
    assert.deepEqual(does({ ...bound, link: aLink({ delivery: late }), turns }), ['Commit']);
    const odd = { result: { ...delivery.result, message: { ...delivery.result.message, finishedAt: at(3600) } } };
    assert.deepEqual(does({ ...bound, link: aLink({ delivery: odd }), turns }), ['Commit'], 'a clock far from ours');
  });
  test('by a drain has its turn committed as Evicted with what it left', () => {
    const [commit] = decide(aWorld({ ...bound, pod: aPod({ status: drained, deleting: true }), link, turns })).actions;
    assert.ok(commit?.do === 'Commit');
    assert.equal(commit.lost?.reason, 'Evicted');
  });
  test('for the disk that it filled has nothing of what it left committed: a pod that restored it would be evicted again', () => {
    const message = 'Usage of EmptyDir volume "berth" exceeds the limit "96Mi". ';
    const status = { phase: 'Failed' as const, reason: 'Evicted', message };
    const { actions } = decide(aWorld({ ...bound, pod: aPod({ status }), link, turns }));
    assert.ok(!actions.some((action) => action.do === 'Commit'));
    assert.equal(written(actions)[0]?.error?.code, 'DiskFull');
  });
  test('by a drain has its turn begun again where that is allowed, and nothing of it committed', () => {
    const actions = decide(
      aWorld({
        ...bound,
        pod: aPod({ status: drained, deleting: true }),
        link,
        turns: [runningTurn('a', { spec: retry })],
      }),
    ).actions;
    assert.deepEqual(names(actions), ['WriteTurn']);
    assert.equal(reasonOf(written(actions)[0]!, 'Running'), 'Evicted');
  });
});

describe('a start that fails', () => {
  const { podUID: _, ...owned } = RUNNING_STATUS;
  const starting = { ...owned, phase: 'Starting' as const };
  const failing = (status: SessionStatus, pod: StoredPod, memory = {}) =>
    decide(
      aWorld({
        session: aSession({ status }),
        pod,
        link: aLink({ phase: 'Opening' }),
        turns: [aTurn({ status: { index: 1, phase: 'Queued', conditions: [] } })],
        memory: { podRead: { podUID: pod.metadata.uid }, ...memory },
      }),
    );
  const killed = aPod({ status: terminated(137, 'OOMKilled') });

  test('is counted in the status before its pod goes, and once', () => {
    const first = failing(starting, killed);
    assert.deepEqual(names(first.actions).includes('DeletePod'), false);
    assert.deepEqual(
      [first.status.startFailures?.count, first.status.startFailures?.reason, first.status.startFailures?.incarnation],
      [1, 'OOMKilled', 1],
    );
    const second = failing(first.status, killed);
    assert.ok(names(second.actions).includes('DeletePod'));
    assert.equal(second.status.startFailures?.count, 1);
  });
  const failures = (count: number, change: object = {}): SessionStatus => ({
    phase: 'Suspended',
    incarnation: count,
    startFailures: { count, reason: 'PodLost', message: 'x', since: at(-60), at: at(0), incarnation: count, ...change },
  });
  test('is followed by the next one after a pause that doubles, also under another leader', () => {
    const waits = [1, 2, 3, 10].map(
      (count) =>
        (decide(aWorld({ session: aSession({ status: failures(count) }), turns: [aTurn()] })).wakeAt - NOW) / 1000,
    );
    assert.deepEqual(waits, [1, 2, 4, 60]);
    const due = failures(3, { at: at(-5) });
    assert.ok(does({ session: aSession({ status: due }), turns: [aTurn()] }).includes('Admit'));
  });
  test('three times by the pod’s own doing ends the turns that wait', () => {
    const status = { ...starting, incarnation: 3, startFailures: failures(2).startFailures! };
    const third = failing({ ...status, podUID: POD_UID }, killed);
    assert.match(written(third.actions)[0]?.error?.message ?? '', /137.*OOMKilled/);
    assert.ok(names(third.actions).includes('DeletePod'));
  });
  test('because the node could not start the container ends the turns that wait with the third time', () => {
    const pod = aPod({ status: terminated(128, 'StartError', 'lstat /proc/0/ns/ipc: no such file or directory') });
    const first = failing(starting, pod);
    assert.equal(first.status.startFailures?.count, 1);
    assert.deepEqual(
      written(first.actions).map(({ phase, error }) => [phase, error]),
      [['Queued', undefined]],
    );
    assert.match(first.status.startFailures?.message ?? '', /exit code 128 \(StartError: lstat/);
    const status = { ...starting, incarnation: 3, startFailures: failures(2).startFailures! };
    const third = failing({ ...status, podUID: POD_UID }, pod);
    const [turn] = written(third.actions);
    assert.equal(turn?.error?.code, 'StartFailed');
    assert.match(turn?.error?.message ?? '', /128.*StartError: lstat/);
    assert.ok(names(third.actions).includes('DeletePod'));
  });
  test('by others’ doing is tried again for as long as timeouts.start', () => {
    const evicted = aPod({
      status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' },
    });
    const early = failing({ ...starting, incarnation: 6, startFailures: failures(5).startFailures! }, evicted);
    assert.deepEqual(
      written(early.actions).map(({ phase, error }) => [phase, error]),
      [['Queued', undefined]],
    );
    const late = failures(5, { since: at(-601) }).startFailures!;
    const last = failing({ ...starting, incarnation: 6, startFailures: late }, evicted);
    assert.equal(written(last.actions)[0]?.error?.code, 'StartFailed');
  });
  test('because the pod vanished before it was bound is counted too', () => {
    const memory = { confirmedGone: { podUID: POD_UID } };
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting' } });
    const decision = decide(aWorld({ session, memory, turns: [aTurn()] }));
    assert.deepEqual([decision.status.podName, decision.status.startFailures?.count], [undefined, 1]);
  });
  test('is forgotten with the first one that works, and when nobody waits any more', () => {
    const status = { ...RUNNING_STATUS, startFailures: failures(2).startFailures! };
    const works = decide(aWorld({ ...bound, session: aSession({ status }), turns: [aTurn()] }));
    assert.equal(works.status.startFailures, undefined);
    assert.equal(decide(aWorld({ session: aSession({ status: failures(2) }) })).status.startFailures, undefined);
    const waits = decide(aWorld({ session: aSession({ status: failures(2) }), turns: [aTurn()] }));
    assert.equal(waits.status.startFailures?.count, 2);
  });

  const waiting = (reason: string, age: number) =>
    aPod({
      age,
      status: {
        phase: 'Pending',
        containerStatuses: [
          {
            name: 'session',
            ready: false,
            restartCount: 0,
            state: { waiting: { reason, message: 'registry says no' } },
          },
        ],
      },
    });
  test('for want of its image waits until timeouts.start, then ends the turns as ImageUnavailable', () => {
    const early = failing(starting, waiting('ImagePullBackOff', 599));
    assert.deepEqual([failed(early.actions), reasonOf(early.status, 'Ready')], [[], 'ImageUnavailable']);
    const late = failing(starting, waiting('ImagePullBackOff', 600));
    assert.equal(written(late.actions)[0]?.error?.code, 'ImageUnavailable');
    assert.match(written(late.actions)[0]?.error?.message ?? '', /timeouts\.start \(600 s\).*registry says no/);
  });
  test('for want of an image that cannot come does not wait', () => {
    const decision = failing({ ...starting, podUID: POD_UID }, waiting('InvalidImageName', 1));
    assert.equal(written(decision.actions)[0]?.error?.code, 'ImageUnavailable');
    assert.ok(names(decision.actions).includes('DeletePod'));
  });
  test('for want of a node waits until timeouts.start, then ends the turns as Unschedulable', () => {
    const conditions = [
      { type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable', message: '0/3 nodes' },
    ];
    const pod = (age: number) => aPod({ age, onNode: false, status: { phase: 'Pending', conditions } });
    assert.deepEqual(failed(failing(starting, pod(599)).actions), []);
    assert.equal(written(failing(starting, pod(600)).actions)[0]?.error?.code, 'Unschedulable');
  });
});

describe('a pod that cannot be created', () => {
  const { podUID: _, ...owned } = RUNNING_STATUS;
  const session = aSession({ status: { ...owned, phase: 'Starting' } });
  const quota = { reason: 'QuotaExceeded' as const, message: 'exceeded quota: pods' };

  test('for want of quota releases its slot, waits and says so', () => {
    const decision = decide(aWorld({ session, memory: { startProblem: quota }, turns: [aTurn()] }));
    assert.deepEqual(failed(decision.actions), []);
    const { status } = decision;
    assert.deepEqual([status.podName, status.phase, status.queue?.reason], [undefined, 'Queued', 'QuotaExceeded']);
    assert.deepEqual([reasonOf(status, 'Admitted'), reasonOf(status, 'Ready')], ['QuotaExceeded', 'QuotaExceeded']);
    const next = decide(aWorld({ session: aSession({ status }), turns: [aTurn()] }));
    assert.deepEqual(
      [next.admission !== undefined, next.wakeAt, next.status.queue?.since],
      [false, NOW + 1000, status.queue?.since],
    );
  });
  test('for want of quota is tried again also for a new session that no turn waits for', () => {
    const { status } = decide(aWorld({ session, memory: { startProblem: quota } }));
    assert.equal(status.phase, 'Queued');
    const later = { ...status, startFailures: { ...status.startFailures!, at: at(-10) } };
    assert.deepEqual(does({ session: aSession({ status: later }) }), ['Admit']);
    const held = decide(aWorld({ session: aSession({ status: later, spec: { suspend: true } }) })).status;
    assert.deepEqual([held.phase, held.queue, held.startFailures], ['Suspended', undefined, undefined]);
  });
  test('for another reason than the API server’s refusal is tried for as long as timeouts.start', () => {
    const startProblem = { reason: 'StartFailed' as const, message: 'The pod cannot be created: webhook down' };
    const world = (since: number) => ({
      session,
      memory: { startProblem, createFailingSince: NOW - since },
      turns: [aTurn()],
    });
    assert.ok(does(world(599_000)).includes('CreatePod'));
    const last = decide(aWorld(world(600_000)));
    assert.equal(failed(last.actions)[0]?.error?.code, 'StartFailed');
    assert.equal(last.status.podName, undefined);
  });
});

describe('a node that does not answer', () => {
  const dead = (seconds: number) => ({ cordoned: false, ready: false, since: NOW - seconds * 1000 });
  const on = (node: ReturnType<typeof dead>, uid = POD_UID) => new Map([[uid, node]]);
  const turns = [runningTurn('a')];
  const deletions = (world: Parameters<typeof aWorld>[0]) =>
    decide(aWorld(world)).actions.flatMap((action) => (action.do === 'DeletePod' ? [action.force ?? false] : []));

  test('keeps its pods for a grace, then they are deleted', () => {
    const early = decide(aWorld({ ...bound, link: sent, turns, nodes: on(dead(59)) }));
    assert.deepEqual([names(early.actions), early.wakeAt], [[], NOW + 1000]);
    assert.deepEqual(deletions({ ...bound, link: sent, turns, nodes: on(dead(60)) }), [false]);
  });
  const terminating = (secondsAgo: number, uid = POD_UID) => {
    const pod = aPod({ deleting: true, uid });
    return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: at(-secondsAgo) } };
  };
  test('does not confirm a deletion: after a grace the pod is removed without it, and its turn is lost only then', () => {
    const world = { session: bound.session, link: sent, turns };
    assert.deepEqual(deletions({ ...world, pod: terminating(59), nodes: on(dead(120)) }), []);
    const decision = decide(aWorld({ ...world, pod: terminating(60), nodes: on(dead(120)) }));
    assert.deepEqual(names(decision.actions), ['DeletePod']);
    assert.equal(decision.status.podName, RUNNING_STATUS.podName, 'its place is still taken');
  });
  test('that answers, or of which nothing is known, is left to end its pods in its own time', () => {
    const world = { session: bound.session, link: sent, turns, pod: terminating(600) };
    assert.deepEqual(deletions({ ...world, nodes: on({ cordoned: false, ready: true, since: 0 }) }), []);
    assert.deepEqual(deletions(world), []);
  });
  test('about which nothing can be done is named in a condition and an event, with what to do', () => {
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Suspending' } });
    const early = decide(aWorld({ session, link: sent, pod: terminating(59) }));
    assert.equal(early.wakeAt, NOW + 1000);
    assert.notEqual(reasonOf(early.status, 'Ready'), 'PodStuck');
    const { status } = decide(aWorld({ session, link: sent, pod: terminating(60) }));
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    assert.equal(ready?.reason, 'PodStuck');
    assert.match(ready?.message ?? '', /node node has not confirmed.*slot stays taken.*delete the Node, or the pod/);
    assert.deepEqual(
      noteworthy(session.status, status).map(({ reason }) => reason),
      ['PodStuck'],
    );
  });
  test('leaves it to be read why the pod was given up, and that it was bound', () => {
    const why = 'The pod is about to be given up; its state is stored first. Nothing had happened.';
    const since = new Date(NOW - 600_000).toISOString();
    const suspending = { type: 'Suspended', status: 'False', reason: 'Suspending', message: why } as const;
    const conditions = [{ ...suspending, lastTransitionTime: since }];
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Suspending', conditions } });
    const { status: stuck } = decide(aWorld({ session, pod: terminating(600) }));
    assert.deepEqual([stuck.phase, reasonOf(stuck, 'Ready')], ['Suspending', 'PodStuck']);
    assert.equal(stuck.conditions?.find(({ type }) => type === 'Suspended')?.message, why);
    // The pod is gone at last, and a turn has come meanwhile: it does not count as a failed start.
    const memory = { confirmedGone: { podUID: POD_UID } };
    const gone = decide(aWorld({ session: aSession({ status: stuck }), memory, turns: [aTurn()] })).status;
    assert.deepEqual([gone.podName, gone.startFailures], [undefined, undefined]);
    const { status } = decide(aWorld({ session: aSession({ status: stuck }), memory }));
    assert.equal(status.phase, 'Suspended');
    assert.match(status.conditions?.find(({ type }) => type === 'Suspended')?.message ?? '', /Nothing had happened\.$/);
  });
  test('keeps no pod of an earlier incarnation for ever either', () => {
    const stray = { ...terminating(61, 'p-0'), metadata: { ...terminating(61, 'p-0').metadata, name: 's-old-0' } };
    assert.deepEqual(deletions({ ...bound, otherPods: [stray], nodes: on(dead(120), 'p-0') }), [true]);
  });
  test('that is cordoned gives its resting sessions away, and no other', () => {
    const node = { cordoned: true, ready: true };
    const idle = { ...bound, session: aSession({ status: { ...RUNNING_STATUS, runnerVersion: '1' } }), node };
    assert.deepEqual(does(idle), ['SuspendRunner']);
    assert.deepEqual(does({ ...idle, link: sent, turns }), []);
  });
});

describe('objects of another incarnation or session', () => {
  test('a result that came over another pod’s link than the turn was given to is not committed', () => {
    const link = aLink({ podUID: 'p-2', delivery: { result: aResult('t-a') } });
    const session = aSession({ status: { ...RUNNING_STATUS, podUID: 'p-2' } });
    const actions = does({ session, pod: aPod({ uid: 'p-2' }), link, turns: [runningTurn('a')] });
    assert.deepEqual(actions, ['Acknowledge']);
  });
  test('frames of a terminating pod for a turn that it does not run have no effect', () => {
    const link = aLink({ delivery: { result: aResult('t-old') } });
    assert.deepEqual(does({ ...bound, pod: aPod({ deleting: true }), link }), []);
    assert.deepEqual(
      does({ ...bound, link, memory: { deletionPending: { podUID: POD_UID, why: 'x', accepted: false } } }),
      ['DeletePod'],
    );
  });
  test('a pod with the present one’s name and another uid is deleted, not taken for it', () => {
    const impostor = aPod({ uid: 'p-other' });
    const memory = { confirmedGone: { podUID: POD_UID } };
    const decision = decide(
      aWorld({ session: bound.session, otherPods: [impostor], memory, turns: [runningTurn('a')] }),
    );
    assert.deepEqual(
      decision.actions.flatMap((action) => (action.do === 'DeletePod' ? [action.pod.metadata.uid] : [])),
      ['p-other'],
    );
    assert.equal(written(decision.actions)[0]?.error?.code, 'PodLost');
  });
  test('a pod uid that only another session’s turn names is not the incarnation’s', () => {
    const { podUID: _, ...owned } = RUNNING_STATUS;
    const old = aTurn({
      owner: 'former',
      status: { index: 1, phase: 'Succeeded', incarnation: 1, podUID: 'p-former' },
    });
    assert.deepEqual(does({ session: aSession({ status: owned }), turns: [old] }), ['CreatePod']);
  });
  test('a turn that a former session of the name owns ends as SessionReplaced', () => {
    const turns = [
      aTurn({ name: 'queued', owner: 'former', status: { index: 1, phase: 'Queued' } }),
      runningTurn('ran', { owner: 'former' }),
    ];
    const session = aSession({ status: { phase: 'Suspended', incarnation: 1 } });
    const ends = decide(aWorld({ session, turns })).actions.flatMap((action) =>
      action.do === 'EndReplaced' ? [[action.turn.metadata.name, action.status.error?.code]] : [action.do],
    );
    assert.deepEqual(ends, [
      ['queued', 'SessionReplaced'],
      ['ran', 'SessionReplaced'],
    ]);
  });
  test('an orphaned turn of a former session ends as SessionReplaced, however young it is', () => {
    const orphan = (status: TurnStatus) => aTurn({ owner: null, age: 1, status });
    for (const status of [
      { index: 3, phase: 'Queued' as const },
      { index: 2, phase: 'Running' as const, podUID: 'p-old' },
    ]) {
      const [first] = written(decide(aWorld({ turns: [orphan(status)] })).actions);
      assert.equal(first?.error?.code, 'SessionReplaced');
    }
  });
  test('a status that a backup brought from another session starts nothing before live reads', () => {
    const restored = {
      phase: 'Ready' as const,
      incarnation: 4,
      podName: `s-${SESSION_UID.replace('f', 'e')}-4`,
      podUID: 'p-old',
    };
    assert.deepEqual(does({ session: aSession({ status: restored }), turns: [aTurn()] }), ['ConfirmGone']);
    const memory = { confirmedGone: { podUID: 'p-old' } };
    assert.equal(decide(aWorld({ session: aSession({ status: restored }), memory })).status.podName, undefined);
  });
});

describe('a runner that has not got its whole state', () => {
  const refused = { code: 'NotRestored', message: 'the state has to be restored first', n: 4 } as const;
  const world = (bindSentAt?: number) => ({
    ...bound,
    link: aLink({ refused, ...(bindSentAt === undefined ? {} : { bindSentAt }) }),
    turns: [runningTurn('a')],
  });

  test('is given it again, by a successor of its first leader at once', () => {
    assert.ok(does(world()).includes('Bind'));
  });
  test('is given it again by the same leader 5 s after the last time', () => {
    assert.ok(!does(world(NOW - 4_000)).includes('Bind'));
    assert.equal(decide(aWorld(world(NOW - 4_000))).wakeAt, NOW + 1_000);
    assert.ok(does(world(NOW - 5_000)).includes('Bind'));
  });
});
