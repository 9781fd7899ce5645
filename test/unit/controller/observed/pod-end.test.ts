import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { podEnd, saysItsEnd } from '../../../../controller/observed/pod-end.ts';
import { givenUpAt, isHopeless, podProblem, unreachableSince } from '../../../../controller/observed/pod-status.ts';
import type { Condition, ContainerState, StoredPod } from '../../../../core/kube/builtin.ts';
import { aPod, NOW } from '../../../support/world.ts';

/** Statuses as Kubernetes 1.35 writes them; the words are those of the source named beside each. */

type Status = NonNullable<StoredPod['status']>;
const AT = '2026-01-01T11:59:00Z';
const disrupted = (reason: string, message: string): Condition => ({
  type: 'DisruptionTarget',
  status: 'True',
  reason,
  message,
  lastTransitionTime: AT,
});
const container = (state: ContainerState, ready = false) => [{ name: 'session', ready, restartCount: 0, state }];
const ended = (exitCode: number, reason: string, message?: string) =>
  container({ terminated: { exitCode, reason, ...(message ? { message } : {}), startedAt: AT, finishedAt: AT } });
const ready = (status: 'True' | 'False', reason?: string): Condition => ({
  type: 'Ready',
  status,
  ...(reason ? { reason } : {}),
  lastTransitionTime: AT,
});

describe('the cause of a pod’s end is taken from what Kubernetes reports', () => {
  const table: [what: string, status: Status, reason: string, words: RegExp, fromOutside: boolean][] = [
    [
      'over its memory limit (containerd)',
      { phase: 'Failed', containerStatuses: ended(137, 'OOMKilled') },
      'OOMKilled',
      /over its memory limit of 1Gi/,
      false,
    ],
    [
      'ended long after an agent of it was over the limit',
      { phase: 'Succeeded', containerStatuses: ended(0, 'OOMKilled') },
      'PodLost',
      /exit code 0/,
      true,
    ],
    [
      'ended by itself, of which Kubernetes says nothing more',
      { phase: 'Failed', containerStatuses: ended(1, 'Error') },
      'PodLost',
      /^ended with exit code 1$/,
      true,
    ],
    [
      'ended by itself, with a message',
      { phase: 'Failed', containerStatuses: ended(3, 'StartError', 'no such file') },
      'PodLost',
      /^ended with exit code 3 \(StartError: no such file\)$/,
      true,
    ],
    [
      'killed, without a word why',
      { phase: 'Failed', containerStatuses: ended(137, 'Error') },
      'PodLost',
      /137.*perhaps for want of memory.*1Gi/,
      true,
    ],
    [
      'evicted under memory pressure (pkg/kubelet/eviction/helpers.go)',
      {
        phase: 'Failed',
        reason: 'Evicted',
        message: 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ',
        conditions: [disrupted('TerminationByKubelet', 'The node was low on resource: memory. ')],
        containerStatuses: ended(137, 'Error'),
      },
      'Evicted',
      /by its node: The node was low on resource: memory/,
      true,
    ],
    [
      'over the size of its own volume (pkg/kubelet/eviction/eviction_manager.go)',
      { phase: 'Failed', reason: 'Evicted', message: 'Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". ' },
      'DiskFull',
      /more of its node’s disk than it may: Usage of EmptyDir/,
      false,
    ],
    [
      'preempted by the scheduler',
      {
        phase: 'Running',
        conditions: [
          disrupted('PreemptionByScheduler', 'default-scheduler: preempting to accommodate a higher priority pod'),
        ],
      },
      'Evicted',
      /preempted by a pod of higher priority: default-scheduler/,
      true,
    ],
    [
      'drained (pkg/registry/core/pod/storage/eviction.go)',
      { phase: 'Running', conditions: [disrupted('EvictionByEvictionAPI', 'Eviction API: evicting')] },
      'Evicted',
      /kubectl drain/,
      true,
    ],
    [
      'on a tainted node (pkg/controller/tainteviction)',
      {
        phase: 'Running',
        conditions: [disrupted('DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint')],
      },
      'Evicted',
      /taint of its node: Taint manager/,
      true,
    ],
    [
      'on a node that was removed (pkg/controller/podgc)',
      { phase: 'Failed', conditions: [disrupted('DeletionByPodGC', 'PodGC: node no longer exists')] },
      'PodLost',
      /removed with its node: PodGC/,
      true,
    ],
    [
      'on a node that shuts down (pkg/kubelet/nodeshutdown)',
      {
        phase: 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
        conditions: [disrupted('TerminationByKubelet', 'Pod was terminated in response to imminent node shutdown.')],
        containerStatuses: ended(0, 'Completed'),
      },
      'Evicted',
      /node, which shuts down/,
      true,
    ],
    [
      'preempted by a critical pod (pkg/kubelet/preemption)',
      {
        phase: 'Failed',
        reason: 'Preempting',
        message: 'Preempted in order to admit critical pod',
        conditions: [disrupted('TerminationByKubelet', 'Preempted in order to admit critical pod')],
      },
      'Evicted',
      /critical pod/,
      true,
    ],
    [
      'refused by the kubelet (pkg/kubelet/lifecycle/predicate.go)',
      { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected: Node didn’t have enough resource: cpu' },
      'PodLost',
      /ended by its node \(OutOfcpu: Pod was rejected/,
      true,
    ],
    [
      'not found after a restart of the node (pkg/kubelet/kubelet_pods.go)',
      {
        phase: 'Failed',
        containerStatuses: ended(
          137,
          'ContainerStatusUnknown',
          'The container could not be located when the pod was terminated',
        ),
      },
      'PodLost',
      /restart of its node/,
      true,
    ],
    ['on a node that is lost', { phase: 'Running', reason: 'NodeLost' }, 'PodLost', /node that does not answer/, true],
    ['of unknown phase', { phase: 'Unknown' }, 'PodLost', /node that does not answer/, true],
    ['ended by itself', { phase: 'Failed', containerStatuses: ended(3, 'Error') }, 'PodLost', /exit code 3/, true],
  ];
  for (const [what, status, reason, words, fromOutside] of table) {
    test(`${what}: ${reason}`, () => {
      const pod = aPod({ status });
      const end = podEnd(pod, { memoryLimit: '1Gi' });
      assert.deepEqual([end.reason, end.fromOutside], [reason, fromOutside]);
      assert.match(end.message, words);
      assert.equal(saysItsEnd(pod), true);
    });
  }
  test('a deleted pod says so, and a healthy pod gives no cause', () => {
    assert.match(podEnd(aPod({ deleting: true }), { memoryLimit: '1Gi' }).message, /^was deleted$/);
    assert.equal(saysItsEnd(aPod({ deleting: true })), true);
    assert.equal(saysItsEnd(aPod()), false);
    assert.equal(podEnd(undefined).reason, 'PodLost');
  });
  test('an ended container says nothing before its pod’s phase does: an eviction for storage is shown with the phase', () => {
    const containerStatuses = ended(0, 'Completed');
    assert.equal(saysItsEnd(aPod({ status: { phase: 'Running', containerStatuses } })), false);
    const message = 'Pod ephemeral local storage usage exceeds the total limit of containers 96Mi. ';
    const shown = aPod({ status: { phase: 'Failed', reason: 'Evicted', message, containerStatuses } });
    assert.deepEqual([saysItsEnd(shown), podEnd(shown).reason], [true, 'DiskFull']);
  });
  test('an eviction counts before the way in which the container ended', () => {
    const conditions = [disrupted('EvictionByEvictionAPI', 'Eviction API: evicting')];
    const status = { phase: 'Failed' as const, conditions, containerStatuses: ended(137, 'OOMKilled') };
    assert.equal(podEnd(aPod({ status, deleting: true })).reason, 'Evicted');
  });
  test('a disruption that was called off is none', () => {
    const called = { ...disrupted('PreemptionByScheduler', 'x'), status: 'False' as const };
    assert.equal(saysItsEnd(aPod({ status: { phase: 'Running', conditions: [called] } })), false);
  });
});

describe('the cause of a failed start is taken from what Kubernetes reports', () => {
  const waiting = (reason: string, message: string) =>
    aPod({ status: { phase: 'Pending', containerStatuses: container({ waiting: { reason, message } }) } });
  const table: [pod: StoredPod, reason: string | undefined, hopeless: boolean][] = [
    [waiting('ErrImagePull', 'failed to pull and unpack image "x": not found'), 'ImageUnavailable', false],
    [waiting('ImagePullBackOff', 'Back-off pulling image "x"'), 'ImageUnavailable', false],
    [waiting('InvalidImageName', 'Failed to apply default image tag "X Y"'), 'ImageUnavailable', true],
    [
      waiting('ErrImageNeverPull', 'Container image "x" is not present with pull policy of Never'),
      'ImageUnavailable',
      true,
    ],
    [waiting('CreateContainerConfigError', 'secret "token" not found'), 'PodConfigError', false],
    [waiting('RunContainerError', 'context deadline exceeded'), 'PodConfigError', false],
    [waiting('ContainerCreating', ''), undefined, false],
    [
      aPod({
        onNode: false,
        status: {
          phase: 'Pending',
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              reason: 'Unschedulable',
              message: '0/3 nodes are available: 3 Insufficient memory.',
            },
          ],
        },
      }),
      'Unschedulable',
      false,
    ],
    [aPod(), undefined, false],
  ];
  for (const [pod, reason, hopeless] of table) {
    const what = pod.status?.containerStatuses?.[0]?.state?.waiting?.reason ?? pod.status?.phase;
    test(`${what}: ${reason ?? 'nothing'}${hopeless ? ', and no wait will help' : ''}`, () => {
      assert.deepEqual([podProblem(pod)?.reason, isHopeless(pod)], [reason, hopeless]);
    });
  }
  test('nothing is told of scheduling once the pod is on a node, whatever the condition of before says', () => {
    for (const reason of ['Unschedulable', 'SchedulerError']) {
      const conditions: Condition[] = [{ type: 'PodScheduled', status: 'False', reason, message: '0/3 nodes' }];
      const status = { phase: 'Pending' as const, conditions };
      assert.equal(podProblem(aPod({ status })), undefined);
      assert.equal(podProblem(aPod({ status, onNode: false }))?.reason, 'Unschedulable');
    }
  });
  test('the message has Kubernetes’ own words, and what to do', () => {
    const message = podProblem(waiting('ErrImagePull', 'not found'))?.message ?? '';
    assert.match(message, /"runner:1" cannot be had \(ErrImagePull\): not found; correct the image/);
  });
});

describe('the time since which a pod’s node has not answered', () => {
  const since = Date.parse(AT);
  const running = (conditions: Condition[], isReady = true): StoredPod =>
    aPod({ status: { phase: 'Running', conditions, containerStatuses: container({ running: {} }, isReady) } });
  const table: [
    what: string,
    pod: StoredPod,
    node: Parameters<typeof unreachableSince>[1],
    expected: number | undefined,
  ][] = [
    ['is said by the node', aPod(), { cordoned: false, ready: false, since }, since],
    ['is never for a node that is ready', running([ready('False')]), { cordoned: true, ready: true }, undefined],
    ['is told by a ready container in a pod that is not', running([ready('False')]), undefined, since],
    [
      'is not told by a pod that its kubelet calls unready',
      running([ready('False', 'ContainersNotReady')], false),
      undefined,
      undefined,
    ],
    [
      'is not told by a pod with gates that are not ready',
      running([ready('False', 'ReadinessGatesNotReady')]),
      undefined,
      undefined,
    ],
    ['is not told by a pod that is well', running([ready('True')]), undefined, undefined],
    [
      'is told by NodeLost',
      aPod({ status: { phase: 'Running', reason: 'NodeLost', conditions: [ready('False')] } }),
      undefined,
      since,
    ],
    [
      'is told by the phase Unknown',
      aPod({ status: { phase: 'Unknown', conditions: [ready('False')] } }),
      undefined,
      since,
    ],
  ];
  for (const [what, pod, node, expected] of table) {
    test(what, () => assert.equal(unreachableSince(pod, node), expected));
  }
});

describe('a pod that is being deleted is removed without its node', () => {
  const GRACE = 60_000;
  const ends = NOW - 1000;
  const long = new Date(NOW - 600_000).toISOString();
  const marked: Condition = { type: 'Ready', status: 'False', lastTransitionTime: long };
  const evicted: Condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    lastTransitionTime: long,
  };
  const deleting = (status: NonNullable<StoredPod['status']>) => aPod({ deleting: true, status });
  const runs = (conditions: Condition[]) =>
    deleting({ phase: 'Running', conditions, containerStatuses: container({ running: {} }, true) });
  const dead = { cordoned: false, ready: false, since: Date.parse(long) };
  const table: [what: string, pod: StoredPod, node: Parameters<typeof givenUpAt>[1], at: number | undefined][] = [
    ['a grace after its own when the node is known to be dead', runs([]), dead, ends + GRACE],
    [
      'a grace after the node fell silent, where that was later',
      runs([]),
      { ...dead, since: NOW + 5000 },
      NOW + 5000 + GRACE,
    ],
    ['never while the node is known to be well', runs([marked]), { cordoned: false, ready: true }, undefined],
    [
      'never when nothing is known of the node and nothing said of the pod',
      runs([ready('True')]),
      undefined,
      undefined,
    ],
    ['when the control plane has called it unready', runs([marked]), undefined, ends + GRACE],
    ['never for a taint alone, as living nodes have those too', runs([ready('True'), evicted]), undefined, undefined],
    [
      'when it was evicted for a taint and no kubelet had started it',
      deleting({ phase: 'Pending', conditions: [evicted] }),
      undefined,
      ends + GRACE,
    ],
    ['when nothing runs in it any more', deleting({ phase: 'Failed' }), undefined, ends + GRACE],
    [
      'never while another container of it runs on, as its kubelet may be at work',
      deleting({
        phase: 'Running',
        containerStatuses: [
          ...container({ terminated: { exitCode: 0 } }),
          { name: 'proxy', ready: true, restartCount: 0, state: { running: {} } },
        ],
      }),
      undefined,
      undefined,
    ],
  ];
  for (const [what, pod, node, at] of table) test(what, () => assert.equal(givenUpAt(pod, node, GRACE), at));
});
