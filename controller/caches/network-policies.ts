import type { NetworkPolicy } from '../../core/kube/builtin.ts';
import { Informer } from '../../core/kube/informer.ts';
import { networkPolicies } from '../../core/kube/resources.ts';
import type { Stored } from '../../core/kube/types.ts';
import { LABEL_MANAGED_BY, LABEL_NETWORK, MANAGED_BY } from '../../core/resources/names.ts';
import { slimMeta } from './slim.ts';
import type { RequiredTools } from './tools.ts';

export interface NetworkPolicyLister {
  /** A NetworkPolicy with Berth's labels. */
  networkPolicy(namespace: string, name: string): Stored<NetworkPolicy> | undefined;
  allNetworkPolicies(): Stored<NetworkPolicy>[];
}

/** The cache of the NetworkPolicies with Berth's labels. */
export function networkPolicyCache(tools: RequiredTools) {
  const informer = new Informer<NetworkPolicy>({
    ...tools,
    resource: networkPolicies,
    labelSelector: `${LABEL_MANAGED_BY}=${MANAGED_BY},${LABEL_NETWORK}`,
    transform: (policy) => ({ ...policy, metadata: slimMeta(policy) }),
  });
  const onPolicy = ({ metadata }: Stored<NetworkPolicy>) =>
    tools.watchers.notify('networkPolicy', metadata.namespace, metadata.name);
  informer.addHandler({ add: onPolicy, update: onPolicy, delete: onPolicy });
  const lister: NetworkPolicyLister = {
    networkPolicy: (namespace, name) => informer.get(namespace, name),
    allNetworkPolicies: () => informer.list(),
  };
  return { informer, lister };
}
