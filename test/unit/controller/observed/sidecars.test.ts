import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { attachability } from '../../../../controller/link/links.ts';
import { podEnd } from '../../../../controller/observed/pod-end.ts';
import { isOver, podProblem, startedContainer } from '../../../../controller/observed/pod-status.ts';
import type { ContainerState, ContainerStatus, StoredPod } from '../../../../core/kube/builtin.ts';
import {
  aClass,
  aLink,
  aPod,
  aSession,
  aTurn,
  aWorld,
  NOW,
  POD_UID,
  RUNNING_STATUS,
  runningTurn,
  written,
} from '../../../support/world.ts';

/** Pods into which an admission webhook has put containers of its own, as meshes do. */

type Status = NonNullable<StoredPod['status']>;
const at = (seconds: number) => new Date(NOW + seconds * 1000).toISOString();
const one = (name: string, state: ContainerState): ContainerStatus => ({ name, ready: true, restartCount: 0, state });
const MESH = one('istio-proxy', { running: { startedAt: at(-60) } });
const FIRST = one('a-proxy', { running: { startedAt: at(-60) } });

/** Container statuses as the kubelet reports them: sorted by name, so others may come before the session's container. */
function beside(
  session: ContainerState,
  { phase = 'Running', others = [MESH] }: Partial<Status> & Others = {},
): Status {
  const containerStatuses = [...others, one('session', session), one('z', { running: {} })];
  return { phase, containerStatuses };
}
interface Others {
  others?: ContainerStatus[];
}
const ended = (exitCode: number, reason: string): ContainerState => ({
  terminated: { exitCode, reason, startedAt: at(-9), finishedAt: at(-1) },
});
const pod = (status: Status, change: Partial<StoredPod['spec']> = {}) => {
  const made = aPod({ status });
  return { ...made, spec: { ...made.spec, ...change } };
};
const actions = (change: Parameters<typeof aWorld>[0]) => decide(aWorld(change)).actions;
const does = (change: Parameters<typeof aWorld>[0]) => actions(change).map((action) => action.do);

describe('a pod with containers of others is judged by the session’s own', () => {
  test('and has ended when that has, whatever still runs beside it', () => {
    assert.equal(isOver(pod(beside(ended(0, 'Completed')))), true);
    assert.equal(isOver(pod(beside({ running: {} }, { others: [one('a', ended(0, 'Completed'))] }))), false);
    assert.equal(podEnd(pod(beside(ended(137, 'OOMKilled')))).reason, 'OOMKilled');
  });

  test('and waits for the phase, which comes with the reason, when all containers have ended', () => {
    const containerStatuses = [one('a', ended(143, 'Error')), one('session', ended(137, 'Error'))];
    assert.equal(isOver(pod({ phase: 'Running', containerStatuses })), false);
    assert.equal(isOver(pod({ phase: 'Failed', reason: 'Evicted', containerStatuses })), true);
  });

  test('and has not started when only another container runs', () => {
    assert.equal(startedContainer(pod(beside({ waiting: { reason: 'ContainerCreating' } }))), false);
    assert.equal(startedContainer(pod(beside({ running: {} }))), true);
  });

  test('and names the image of the container that keeps it from starting, also of an init container of others', () => {
    const containers = [{ name: 'istio-proxy', image: 'mesh:1' }, ...aPod().spec.containers];
    const waiting = { waiting: { reason: 'ImagePullBackOff', message: 'not found' } };
    const own = podProblem(pod(beside(waiting, { phase: 'Pending' }), { containers }));
    assert.match(own?.message ?? '', /^Image "runner:1" cannot be had/);
    const initContainers = [{ name: 'mesh-init', image: 'mesh-init:1' }];
    const status = beside({ waiting: { reason: 'PodInitializing' } }, { phase: 'Pending' });
    const before = {
      ...status,
      initContainerStatuses: [one('done', ended(0, 'Completed')), one('mesh-init', waiting)],
    };
    const other = podProblem(pod(before, { containers, initContainers }));
    assert.match(other?.message ?? '', /^Image "mesh-init:1" cannot be had/);
  });

  test('an init container of others that fails is named as what kept it from starting', () => {
    const failed = one('mesh-init', ended(3, 'Error'));
    const status: Status = { phase: 'Failed', initContainerStatuses: [one('runner', ended(0, 'Completed')), failed] };
    const failures = {
      count: 5,
      reason: 'PodLost',
      message: 'x',
      since: at(-601),
      at: at(-60),
      incarnation: 0,
    } as const;
    const session = aSession({ status: { ...RUNNING_STATUS, phase: 'Starting', startFailures: failures } });
    const link = aLink({ phase: 'Opening' });
    const queued = aTurn({ name: 'a', status: { index: 1, phase: 'Queued' } });
    const [turn] = written(actions({ session, pod: pod(status), link, turns: [queued] }));
    assert.equal(turn?.error?.code, 'StartFailed');
    assert.match(turn?.error?.message ?? '', /^Init container "mesh-init", which is not Berth’s.*exit code 3/);
  });

  test('and can be attached while sidecars run that were started before it', () => {
    const initContainers = [{ name: 'mesh', restartPolicy: 'Always' as const }, { name: 'runner' }];
    const initContainerStatuses = [one('runner', ended(0, 'Completed')), one('mesh', { running: {} })];
    const status = { ...beside({ waiting: { reason: 'PodInitializing' } }), initContainerStatuses };
    assert.equal(attachability(pod(status, { initContainers })).scheduled, true);
    const early = { ...status, initContainerStatuses: initContainerStatuses.slice(1) };
    assert.equal(attachability(pod(early, { initContainers })).scheduled, false);
  });
});

describe('a pod whose container has ended beside a sidecar that runs on', () => {
  const session = aSession({ status: RUNNING_STATUS });
  const turns = [runningTurn('a')];

  for (const others of [[MESH], [FIRST, MESH]]) {
    const over = pod(beside(ended(137, 'OOMKilled'), { others }));
    test(`has its log read, its turn ended and goes (${others.length} before it)`, () => {
      const world = { session, turns, pod: over, link: aLink({ sent: new Set(['t-a']) }) };
      assert.deepEqual(does(world), ['ReadLog']);
      const last = actions({ ...world, memory: { logRead: { podUID: POD_UID } } });
      assert.deepEqual(
        last.map((action) => action.do),
        ['WriteTurn', 'CloseLink', 'DeletePod'],
      );
      assert.equal(last[0]?.do === 'WriteTurn' && last[0].status.error?.code, 'OOMKilled');
    });
  }

  test('of a program without a runner is read for its result, and then goes', () => {
    const made = pod(beside(ended(0, 'Completed')));
    const labels = { ...made.metadata.labels, 'berth.dev/runner': 'None', 'berth.dev/turn-uid': 't-a' };
    const world = {
      session: aSession({ spec: { agent: undefined } as never, status: RUNNING_STATUS }),
      class: aClass({ runner: 'None', image: 'any:1', agent: { command: ['agent'] } }),
      pod: { ...made, metadata: { ...made.metadata, labels } },
    };
    const [commit] = actions({ ...world, turns });
    assert.equal(commit?.do, 'CommitLog');
    assert.equal(commit?.do === 'CommitLog' && commit.lost, undefined, 'its exit code counts');
    assert.deepEqual(does(world), ['DeletePod']);
  });
});
