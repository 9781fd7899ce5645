import { forbidden } from '../../errors.ts';
import { isObject } from '../../object.ts';
import { ageColumn, builtin, field, nameColumn, text } from './define.ts';
import { defaultPodSpec, qosClass } from './pod-defaults.ts';
import type { ContainerStatus, Pod } from './pod-types.ts';
import { podErrors } from './pod-validation.ts';
import { builtinSchema } from './schemas.ts';

const orNone = (value: unknown) => text(value) || '<none>';

export const pods = builtin({
  plural: 'pods',
  kind: 'Pod',
  schema: builtinSchema('V1Pod'),
  shortNames: ['po'],
  categories: ['all'],
  status: true,
  generation: true,
  returnsDeleted: true,
  selectable: {
    'spec.nodeName': field('spec', 'nodeName'),
    'spec.restartPolicy': field('spec', 'restartPolicy'),
    'spec.schedulerName': field('spec', 'schedulerName'),
    'spec.serviceAccountName': field('spec', 'serviceAccountName'),
    'status.phase': field('status', 'phase'),
    'status.podIP': field('status', 'podIP'),
    'status.nominatedNodeName': field('status', 'nominatedNodeName'),
  },
  columns: [
    nameColumn,
    { name: 'Ready', type: 'string', cell: (pod) => readiness(pod as Pod) },
    { name: 'Status', type: 'string', cell: (pod) => summary(pod as Pod) },
    { name: 'Restarts', type: 'string', cell: (pod) => String(restarts(pod as Pod)) },
    ageColumn,
    { name: 'IP', type: 'string', priority: 1, cell: (pod) => orNone((pod as Pod).status?.podIP) },
    { name: 'Node', type: 'string', priority: 1, cell: (pod) => orNone((pod as Pod).spec.nodeName) },
  ],
  prepareCreate(object) {
    const pod = object as Pod;
    if (!isObject(pod.spec)) pod.spec = { containers: [] };
    defaultPodSpec(pod.spec);
    pod.status = { phase: 'Pending', qosClass: qosClass(pod.spec) };
  },
  prepareUpdate(object, old) {
    const pod = object as Pod;
    defaultPodSpec(pod.spec);
    pod.status = (old as Pod).status as NonNullable<Pod['status']>;
  },
  prepareStatus(object) {
    const { status } = object as Pod;
    for (const condition of status?.conditions ?? []) {
      condition.lastProbeTime ??= null;
      condition.lastTransitionTime ??= null;
    }
    for (const container of status?.containerStatuses ?? []) container.lastState ??= {};
  },
  admit(object, lookup) {
    const { serviceAccountName, priorityClassName = '', runtimeClassName } = (object as Pod).spec;
    const account = serviceAccountName as string;
    const { name, namespace } = object.metadata;
    const refuse = (why: string) => forbidden({ group: '', plural: 'pods' }, name, why);
    if (!lookup('serviceaccounts', account)) {
      throw refuse(`error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`);
    }
    // PriorityClasses and RuntimeClasses do not exist here, so a pod that names one is refused as on a cluster without it.
    if (priorityClassName && !priorityClassName.startsWith('system-')) {
      throw refuse(`no PriorityClass with name ${priorityClassName} was found`);
    }
    if (runtimeClassName) throw refuse(`pod rejected: RuntimeClass "${runtimeClassName}" not found`);
  },
  validate: (object, old) => podErrors(object as Pod, old as Pod | undefined),
  graceSeconds(object, requested) {
    const { spec, status } = object as Pod;
    if (!spec.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return 0;
    const period = requested ?? spec.terminationGracePeriodSeconds ?? 0;
    return period < 0 ? 1 : period;
  },
});

const statuses = (pod: Pod): ContainerStatus[] => pod.status?.containerStatuses ?? [];

function readiness(pod: Pod): string {
  const ready = statuses(pod).filter((status) => status.ready && status.state?.running).length;
  return `${ready}/${pod.spec.containers.length}`;
}

const restarts = (pod: Pod) => statuses(pod).reduce((sum, status) => sum + status.restartCount, 0);

/** Returns the most telling reason: why a container waits or ended, before the pod's phase. */
function summary(pod: Pod): string {
  const phase = pod.status?.phase ?? '';
  let reason = pod.status?.reason || phase;
  let error = '';
  let running = false;
  for (const { state, ready } of statuses(pod).toReversed()) {
    if (state?.waiting?.reason) reason = state.waiting.reason;
    else if (state?.terminated) {
      const { exitCode, signal } = state.terminated;
      reason = state.terminated.reason || (signal ? `Signal:${signal}` : `ExitCode:${exitCode}`);
      if (exitCode !== 0) error = reason;
    } else if (ready && state?.running) running = true;
  }
  if (reason === 'Completed' && error) reason = error;
  else if (reason === 'Completed' && running) reason = 'NotReady';
  if (pod.metadata.deletionTimestamp && phase !== 'Succeeded' && phase !== 'Failed') return 'Terminating';
  return reason;
}
