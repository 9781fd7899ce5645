import { isObject, type Json } from '../../object.ts';
import type { Container, PodSpec } from './pod-types.ts';

/** Sets the defaults of the API server and its admission plugins. */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ??= 'Always';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.securityContext ??= {};
  spec.schedulerName ??= 'default-scheduler';
  spec.enableServiceLinks ??= true;
  spec.preemptionPolicy ??= 'PreemptLowerPriority';
  spec.priority ??= 0;
  const account = spec.serviceAccountName || spec.serviceAccount || 'default';
  spec.serviceAccountName = account;
  spec.serviceAccount = account;
  spec.tolerations ??= ['not-ready', 'unreachable'].map((state) => ({
    key: `node.kubernetes.io/${state}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  }));
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) defaultContainer(container);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
}

function defaultContainer(container: Container): void {
  const tag = /:([^/:@]+)$/.exec(container.image ?? '')?.[1];
  const pinned = container.image?.includes('@') === true || (tag !== undefined && tag !== 'latest');
  container.imagePullPolicy ??= pinned ? 'IfNotPresent' : 'Always';
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  container.resources ??= {};
  for (const amounts of [container.resources.limits, container.resources.requests]) {
    for (const [name, amount] of Object.entries(amounts ?? {}))
      Object.assign(amounts as object, { [name]: String(amount) });
  }
  const { limits } = container.resources;
  if (limits) container.resources.requests = { ...limits, ...container.resources.requests };
  for (const port of container.ports ?? []) port.protocol ??= 'TCP';
  for (const { valueFrom } of container.env ?? []) if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ??= 'v1';
}

const modeSources = ['secret', 'configMap', 'projected', 'downwardAPI'];

function defaultVolume(volume: Json): void {
  const sources = Object.keys(volume).filter((key) => key !== 'name');
  if (sources.length === 0) volume.emptyDir = {};
  for (const source of modeSources) {
    const value = volume[source];
    if (isObject(value)) value.defaultMode ??= 420;
  }
}

/** Returns the quality of service class, from the containers' requests and limits. */
export function qosClass(spec: PodSpec): string {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  const amounts = containers.map(({ resources }) => ({ ...resources }));
  if (amounts.every(({ limits, requests }) => !limits?.cpu && !limits?.memory && !requests?.cpu && !requests?.memory)) {
    return 'BestEffort';
  }
  const guaranteed = amounts.every(
    ({ limits, requests }) =>
      limits?.cpu && limits.memory && limits.cpu === requests?.cpu && limits.memory === requests.memory,
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
