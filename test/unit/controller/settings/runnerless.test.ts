import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import type { Problem } from '../../../../controller/observed/world.ts';
import { sessionPod } from '../../../../controller/pod/pod.ts';
import { runnerlessPod } from '../../../../controller/pod/runnerless-pod.ts';
import { effective, isProblem } from '../../../../controller/settings/effective.ts';
import type { ContainerStatus, StoredPod } from '../../../../core/kube/builtin.ts';
import { redactionOf } from '../../../../core/resources/redaction.ts';
import { sessionClassSpec } from '../../../../core/resources/sessionclass.ts';
import type { TurnStatus } from '../../../../core/resources/turn.ts';
import {
  aClass,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  SESSION_UID,
  type WorldChange,
} from '../../../support/world.ts';

const NONE = aClass({ runner: 'None', image: 'any:1', agent: { command: ['agent'] } });
const session = aSession({ spec: { agent: undefined } as never, status: RUNNING_STATUS });
const { podUID: _podUID, ...OWNED } = RUNNING_STATUS;
/** Status of a session that owns its incarnation and has no pod yet. */
const owned = aSession({ spec: { agent: undefined } as never, status: OWNED });
const fresh = aSession({ spec: { agent: undefined } as never });
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();

/** The pod of turn `t-a`. */
function podFor(change: { gated?: boolean; status?: StoredPod['status']; deleting?: boolean } = {}): StoredPod {
  const { gated = false, ...rest } = change;
  const pod = aPod(rest);
  const labels = { ...pod.metadata.labels, 'berth.dev/runner': 'None', 'berth.dev/turn-uid': 't-a' };
  const gates = gated ? { schedulingGates: [{ name: 'berth.dev/turn' }] } : {};
  return { ...pod, metadata: { ...pod.metadata, labels }, spec: { ...pod.spec, ...gates } };
}
const state = (value: object): NonNullable<NonNullable<StoredPod['status']>['containerStatuses']> => [
  { name: 'session', ready: true, restartCount: 0, state: value },
];
const running = (seconds: number) => ({
  phase: 'Running' as const,
  containerStatuses: state({ running: { startedAt: ago(seconds) } }),
});
const over = (exitCode: number, more: NonNullable<StoredPod['status']> = {}): NonNullable<StoredPod['status']> => ({
  phase: 'Failed',
  containerStatuses: state({ terminated: { exitCode, startedAt: ago(9), finishedAt: ago(1) } }),
  ...more,
});

const look = (change: WorldChange) => decide(aWorld({ session, class: NONE, ...change }));
/** Steps of the decision in order, as words. */
const does = (change: WorldChange) => {
  const { actions, admission } = look(change);
  const words = actions.map((action) => {
    if (action.do === 'WriteTurn') return `${action.turn.metadata.name} ${action.status.phase}`;
    if (action.do === 'ShowWait') return `shows ${action.turn.metadata.name} ${action.status.phase}`;
    if (action.do === 'CommitLog') return action.lost ? `CommitLog or ${action.lost.phase}` : 'CommitLog';
    return action.do;
  });
  return admission ? [...words, 'Admit'] : words;
};

describe('a session whose class has runner None', () => {
  const queued = () => [aTurn({ name: 'a', status: { index: 1, phase: 'Queued' } })];
  const lostJustNow = aTurn({
    name: 'a',
    status: {
      ...{ index: 1, phase: 'Queued', attempt: 1 },
      conditions: [
        { type: 'Running', status: 'False', reason: 'PodLost', message: '', lastTransitionTime: ago(0) },
        { type: 'Finished', status: 'False', reason: 'Retrying', message: '', lastTransitionTime: ago(0) },
      ],
    },
  });
  /** The turn of the pod, which got it so many seconds ago, as it is shown. */
  const givenTurn = (seconds: number, phase: 'Running' | 'Queued' = 'Running') => {
    const condition = { reason: 'Starting', message: '', lastTransitionTime: ago(seconds) };
    const isRunning = phase === 'Running' ? 'True' : 'False';
    const conditions = [
      { ...condition, type: 'Running', status: isRunning },
      { ...condition, type: 'Finished', status: 'False' },
    ] as NonNullable<TurnStatus['conditions']>;
    return runningTurn('a', { status: { phase, conditions } });
  };
  const gated = podFor({ gated: true, status: { phase: 'Pending' } });

  for (const { what, world, actions } of [
    { what: 'without a turn asks for no pod', world: { session: fresh }, actions: [] },
    {
      what: 'asks for a place when a turn comes',
      world: { session: fresh, turns: queued() },
      actions: ['Admit'],
    },
    { what: 'makes the pod of its turn', world: { session: owned, turns: queued() }, actions: ['CreatePod'] },
    {
      what: 'writes the turn Running before it lets its pod run',
      world: { pod: gated, turns: queued() },
      actions: ['a Running', 'LetRun'],
    },
    {
      what: 'lets nothing run whose turn is not to begin yet',
      world: { pod: gated, turns: [lostJustNow] },
      actions: [],
    },
    {
      what: 'lets run what an earlier leader had written Running',
      world: { pod: gated, turns: [runningTurn('a')] },
      actions: ['LetRun'],
    },
    {
      what: 'waits for a container',
      world: { pod: podFor({ status: { phase: 'Pending' } }), turns: [givenTurn(2)] },
      actions: [],
    },
    {
      what: 'shows its turn as queued when the container does not come',
      world: { pod: podFor({ status: { phase: 'Pending' } }), turns: [givenTurn(3)] },
      actions: ['shows a Queued'],
    },
    {
      what: 'shows its turn as running when the container comes after all',
      world: { pod: podFor({ status: running(1) }), turns: [givenTurn(3, 'Queued')] },
      actions: ['shows a Running', 'GiveInput'],
    },
    {
      what: 'gives up no pod of a turn that is shown as queued, also while turns are held',
      world: {
        session: aSession({ spec: { agent: undefined, suspend: true } as never, status: RUNNING_STATUS }),
        pod: podFor({ status: running(1) }),
        turns: [givenTurn(3, 'Queued')],
        memory: { inputGiven: { podUID: POD_UID } },
      },
      actions: ['shows a Running'],
    },
    {
      what: 'gives the input to what runs',
      world: { pod: podFor({ status: running(1) }), turns: [runningTurn('a')] },
      actions: ['GiveInput'],
    },
    {
      what: 'gives it once',
      world: {
        pod: podFor({ status: running(1) }),
        turns: [runningTurn('a')],
        memory: { inputGiven: { podUID: POD_UID } },
      },
      actions: [],
    },
    {
      what: 'reads the log of what has ended',
      world: { pod: podFor({ status: over(0) }), turns: [runningTurn('a')] },
      actions: ['CommitLog'],
    },
    {
      what: 'takes an exit code for the program’s own',
      world: { pod: podFor({ status: over(143) }), turns: [runningTurn('a')] },
      actions: ['CommitLog'],
    },
    {
      what: 'loses what was killed, unless its log has a result',
      world: { pod: podFor({ status: over(137) }), turns: [runningTurn('a')] },
      actions: ['CommitLog or Failed'],
    },
    {
      what: 'loses what was evicted, unless its log has a result',
      world: { pod: podFor({ status: over(0, { reason: 'Evicted' }) }), turns: [runningTurn('a')] },
      actions: ['CommitLog or Failed'],
    },
    {
      what: 'begins again what was deleted, where it may',
      world: {
        pod: podFor({ status: over(0), deleting: true }),
        turns: [runningTurn('a', { spec: { retry: { maxAttempts: 2 } } })],
      },
      actions: ['CommitLog or Queued'],
    },
    { what: 'gives up the pod of an ended turn', world: { pod: podFor({ status: over(0) }) }, actions: ['DeletePod'] },
    { what: 'gives up a pod whose turn is gone', world: { pod: gated }, actions: ['DeletePod'] },
    {
      what: 'gives up a pod that was made for another turn than the next',
      world: { pod: gated, turns: [aTurn({ name: 'b', status: { index: 1, phase: 'Queued' } })] },
      actions: ['DeletePod'],
    },
    {
      what: 'gives up a pod that waits while turns are held',
      world: {
        session: aSession({ spec: { agent: undefined, suspend: true } as never, status: RUNNING_STATUS }),
        pod: gated,
        turns: queued(),
      },
      actions: ['shows a Queued', 'DeletePod'],
    },
    {
      what: 'cancels a turn, then its pod',
      world: { pod: podFor({ status: running(1) }), turns: [runningTurn('a', { spec: { cancel: true } })] },
      actions: ['a Cancelled', 'DeletePod'],
    },
    {
      what: 'ends a turn at its timeout',
      world: { pod: podFor({ status: running(11) }), turns: [runningTurn('a', { spec: { timeout: '10s' } })] },
      actions: ['a TimedOut', 'DeletePod'],
    },
    {
      what: 'finds out whether a pod is gone',
      world: { turns: [runningTurn('a')] },
      actions: ['ConfirmGone'],
    },
    {
      what: 'loses the turn of a pod that is gone',
      world: { turns: [runningTurn('a')], memory: { confirmedGone: { podUID: POD_UID } } },
      actions: ['a Failed', 'CloseLink'],
    },
    {
      what: 'queues the turn again whose pod went before it was let run',
      world: { turns: [runningTurn('a')], memory: { confirmedGone: { podUID: POD_UID }, lastPod: gated } },
      actions: ['a Queued', 'CloseLink'],
    },
    {
      what: 'loses the turn whose pod went when it may have been let run',
      world: {
        turns: [runningTurn('a')],
        memory: { confirmedGone: { podUID: POD_UID }, lastPod: gated, letRun: { podUID: POD_UID } },
      },
      actions: ['a Failed', 'CloseLink'],
    },
  ] as { what: string; world: WorldChange; actions: string[] }[]) {
    test(what, () => assert.deepEqual(does(world), actions));
  }

  describe('a pod that was let run and reports no start within timeouts.start', () => {
    const late = podFor({ status: { phase: 'Pending' } });
    late.metadata.creationTimestamp = ago(601);
    const { nodeName: _, ...unbound } = late.spec;
    const memory = { podRead: { podUID: POD_UID } };
    const turns = [runningTurn('a')];

    test('goes, and its turn, which may run unseen, stays open where it is on a node', () => {
      assert.deepEqual(does({ pod: late, turns, memory }), ['CloseLink', 'DeletePod']);
    });

    test('goes, and its turn stays open where only its scheduling or its creation is said to have failed', () => {
      const conditions = [{ type: 'PodScheduled', status: 'False' as const, reason: 'Unschedulable', message: 'none' }];
      const pod = { ...late, status: { phase: 'Pending' as const, conditions } };
      assert.deepEqual(does({ pod, turns, memory }), ['CloseLink', 'DeletePod']);
      const startProblem = { reason: 'StartFailed' as const, message: 'the answer to the creation was lost' };
      assert.deepEqual(does({ pod: late, turns, memory: { ...memory, startProblem } }), ['CloseLink', 'DeletePod']);
    });

    test('fails its turn too where it is on no node', () => {
      assert.deepEqual(does({ pod: { ...late, spec: unbound }, turns, memory }), [
        'a Failed',
        'CloseLink',
        'DeletePod',
      ]);
    });

    describe('because its image cannot be had', () => {
      const waits = { ...state({ waiting: { reason: 'ImagePullBackOff' } })[0] } as ContainerStatus;
      const pending = { ...late, status: { phase: 'Pending' as const, containerStatuses: [waits] } };
      const { actions } = look({ pod: pending, turns, memory });
      const deletion = actions.find((action) => action.do === 'DeletePod');
      const deletionPending = { podUID: POD_UID, why: '', problem: deletion?.problem as Problem, accepted: true };
      /** The action for the pod as it has ended, and the code of its turn once the pod is gone. */
      const endsAs = (last: Partial<ContainerStatus>, more: StoredPod['status'] = {}) => {
        const status = { phase: 'Failed' as const, containerStatuses: [{ ...waits, ...last }], ...more };
        const pod = { ...pending, metadata: { ...late.metadata, deletionTimestamp: ago(0) }, status };
        const gone = { confirmedGone: { podUID: POD_UID }, lastPod: pod, deletionPending };
        const written = look({ turns, memory: gone }).actions.find((action) => action.do === 'WriteTurn');
        return [does({ pod, turns, memory: { deletionPending } })[0], written?.status.error?.code];
      };
      const unknown = { exitCode: 137, reason: 'ContainerStatusUnknown' };

      test('goes, and its turn, which a kubelet may have started just now, stays open and says why', () => {
        assert.deepEqual(does({ pod: pending, turns, memory }), ['shows a Queued', 'CloseLink', 'DeletePod']);
        assert.equal(deletion?.problem?.reason, 'ImageUnavailable');
      });

      test('fails its turn with that once the pod has ended and its container was never created', () => {
        assert.deepEqual(endsAs({ state: { terminated: unknown } }), ['a Failed', 'ImageUnavailable']);
        const initContainerStatuses = [{ ...waits, name: 'of a webhook', state: { terminated: unknown } }];
        assert.deepEqual(endsAs({}, { initContainerStatuses }), ['a Failed', 'ImageUnavailable']);
      });

      test('loses its turn where the container was created after all, or nobody has seen how the pod ended', () => {
        const created = { containerID: 'containerd://1', state: { terminated: unknown } };
        assert.deepEqual(endsAs(created), ['CommitLog or Failed', 'PodLost']);
        const started = { state: { terminated: { ...unknown, startedAt: ago(1) } } };
        assert.deepEqual(endsAs(started), ['CommitLog or Failed', 'PodLost']);
        const forgotten = { state: { terminated: unknown }, lastState: { terminated: unknown } };
        assert.deepEqual(endsAs(forgotten), ['CommitLog or Failed', 'PodLost']);
        assert.equal(endsAs({}, { phase: 'Pending' })[1], 'PodLost');
        // As podgc leaves a pod whose node is out of service.
        assert.deepEqual(endsAs({}), ['CommitLog or Failed', 'PodLost']);
      });
    });
  });

  test('a slot whose turn is gone is released', () => {
    assert.equal(look({ session: owned }).status.podName, undefined);
  });

  test('a pod that runs goes on as it was made, whatever its class is now', () => {
    const pod = podFor({ status: over(0) });
    assert.deepEqual(does({ pod, turns: [runningTurn('a')], class: aClass() }), ['CommitLog']);
  });

  test('is reconciled again at the timeout', () => {
    const pod = podFor({ status: running(1) });
    const memory = { inputGiven: { podUID: POD_UID } };
    const turns = [runningTurn('a', { spec: { timeout: '5s' } })];
    assert.equal(look({ pod, memory, turns }).wakeAt, NOW + 4_000);
  });

  test('the session shows its turn once that has run for a second, and rests without one', () => {
    const pod = podFor({ status: running(2) });
    const { status } = look({ pod, turns: [runningTurn('a')] });
    assert.deepEqual([status.phase, status.currentTurn], ['Running', 'a']);
    assert.equal(look({ session: fresh }).status.phase, 'Suspended');
  });
});

describe('the pod of a turn without a runner', () => {
  const spec = sessionClassSpec.parse({
    ...{ runner: 'None', image: 'any:1' },
    agent: { command: ['a $$'], args: ['b'], env: [{ name: 'X', value: '$(SESSION_UID) $(HOME)' }] },
  });
  const settings = effective(fresh, aClass(spec), aWorld().installation);
  assert.ok(!isProblem(settings));
  const make = (input: string) =>
    runnerlessPod(sessionPod(fresh, 1, settings), fresh, settings, { uid: 't-a', name: 'a', input });
  const env = (input: string) =>
    Object.fromEntries((make(input).spec.containers[0]?.env ?? []).map(({ name, value }) => [name, value]));

  test('is held back, tells whose it is, and has no folder of a runner', () => {
    const { metadata, spec } = make('1');
    assert.deepEqual(spec.schedulingGates, [{ name: 'berth.dev/turn' }]);
    assert.equal(metadata.labels?.['berth.dev/turn-uid'], 't-a');
    assert.deepEqual(
      spec.volumes?.map(({ name }) => name),
      ['tmp'],
    );
    const [container] = spec.containers;
    assert.deepEqual([container?.command, container?.args, container?.stdinOnce], [['a $$$$'], ['b'], true]);
  });

  test('keeps the redaction rules of its class, which may be edited or deleted while its program runs', () => {
    const rules = { redact: ['tk-[0-9]{1,20}'], redaction: { heuristics: 'Everything' } } as const;
    const made = effective(fresh, aClass({ ...spec, ...rules, redact: [...rules.redact] }), aWorld().installation);
    assert.ok(!isProblem(made), JSON.stringify(made));
    const pod = runnerlessPod(sessionPod(fresh, 1, made), fresh, made, { uid: 't-a', name: 'a', input: '1' });
    const expected = { patterns: ['tk-[0-9]{1,20}'], heuristics: 'Everything' };
    assert.deepEqual(redactionOf(pod, undefined), expected);
    assert.deepEqual(redactionOf(pod, aClass({ redact: ['('] })), expected);
    const ofEarlierVersion = { ...pod, metadata: { ...pod.metadata, annotations: {} } };
    assert.deepEqual(redactionOf(ofEarlierVersion, aClass({ redact: ['x'] })).patterns, ['x']);
  });

  test('has the input so that the kubelet leaves it as it is', () => {
    assert.equal(env('"$(HOME) $$"').BERTH_INPUT, '"$$(HOME) $$$$"');
    assert.equal(env('1').X, `${SESSION_UID} $$(HOME)`);
  });

  test('has no variable for an input that Linux would not take', () => {
    assert.ok(env('x'.repeat(131_059)).BERTH_INPUT);
    assert.equal(env('x'.repeat(131_060)).BERTH_INPUT, undefined);
  });
});
