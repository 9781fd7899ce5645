import type { KubeCluster } from '../cluster/cluster.ts';
import { error, type Found, needing, ok, warning } from './finding.ts';

interface DaemonSet {
  metadata: { name: string; namespace: string };
  spec: { template: { spec: { containers: { name: string; args?: string[] }[] } } };
  status?: { desiredNumberScheduled?: number; numberReady?: number };
}

/** Plugins that enforce NetworkPolicies, by the names of their DaemonSets: docs/network.md#enforcement. */
const ENFORCING: readonly [name: RegExp, plugin: string][] = [
  [/^(calico-node|canal)$/, 'Calico'],
  [/^cilium$/, 'Cilium'],
  [/^anetd$/, 'GKE Dataplane V2'],
  [/^antrea-agent$/, 'Antrea'],
  [/^kube-router$/, 'kube-router'],
  [/^weave-net$/, 'Weave Net'],
  [/^ovnkube-node/, 'OVN-Kubernetes'],
  [/^kube-ovn-cni$/, 'Kube-OVN'],
  [/^azure-npm$/, 'Azure Network Policy Manager'],
  [/^kindnet$/, 'kind’s plugin'],
];

const TEST =
  'try it with packets (docs/network.md#enforcement): in a class with network None a session must not reach any address';

/**
 * Says what can be known of the enforcement of NetworkPolicies without a packet: which known plugin runs. Everything else is unknown,
 * and an unknown plugin is never ok.
 */
export async function networkFound({ api, embedded }: KubeCluster, signal: AbortSignal): Promise<Found[]> {
  if (await embedded()) {
    const message = 'the embedded cluster does not enforce NetworkPolicies: pods are processes of this machine';
    return [warning(message, 'run only agents here that may reach what you may reach (docs/sandbox.md)')];
  }
  const read = api.raw('GET', '/apis/apps/v1/daemonsets', { signal });
  const { items } = (await needing('list daemonsets.apps in all namespaces', read)) as { items: DaemonSet[] };
  const found = items.flatMap((set) => {
    const plugin = pluginOf(set);
    return plugin === undefined ? [] : [{ set, plugin }];
  });
  if (found.length === 0) {
    const flannel = items.some(({ metadata }) => /^kube-flannel(-ds.*)?$/.test(metadata.name));
    if (flannel) {
      const message = 'flannel runs, and no known plugin that enforces NetworkPolicies: agents may reach everything';
      return [error(message, `install a plugin that enforces them, and ${TEST}`)];
    }
    return [warning('it is unknown whether NetworkPolicies are enforced: no known plugin runs as a DaemonSet', TEST)];
  }
  return found.map(({ set: { metadata, status }, plugin }) => {
    const { desiredNumberScheduled: desired = 0, numberReady: ready = 0 } = status ?? {};
    const nodes = `DaemonSet ${metadata.namespace}/${metadata.name}: ready on ${ready} of ${desired} nodes`;
    if (ready < desired || ready === 0) {
      const act = `kubectl describe daemonset ${metadata.name} --namespace ${metadata.namespace}`;
      return warning(`${plugin} enforces NetworkPolicies, and is not ready everywhere (${nodes})`, act);
    }
    return ok(`${plugin} runs, which enforces NetworkPolicies unless that is switched off (${nodes})`);
  });
}

function pluginOf({ metadata, spec }: DaemonSet): string | undefined {
  // The plugin of Amazon enforces them in a container of its own, where that is switched on.
  if (metadata.name === 'aws-node') {
    const isOn = spec.template.spec.containers.some(({ args = [] }) => args.includes('--enable-network-policy=true'));
    return isOn ? 'the Amazon VPC plugin' : undefined;
  }
  return ENFORCING.find(([name]) => name.test(metadata.name))?.[1];
}
