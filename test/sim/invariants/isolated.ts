import { networkPolicies, pods } from '../../../core/kube/resources.ts';
import { LABEL_NETWORK, LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { storageOf } from '../api/server.ts';
import type { MakeInvariant } from './invariant.ts';

const POLICIES = storageOf(networkPolicies);

/** A NetworkPolicy selects a session's pod before the pod exists, and as long as it does. */
export const isolated: MakeInvariant = (facts) => ({
  committed({ storage, type, object }) {
    const { name, namespace, labels } = object.metadata;
    if (storage === 'pods' && type === 'ADDED' && labels?.[LABEL_SESSION_UID] !== undefined) {
      const selects = facts.server.list(networkPolicies).some(({ metadata, spec }) => {
        return (
          metadata.namespace === namespace && spec.podSelector.matchLabels?.[LABEL_NETWORK] === labels[LABEL_NETWORK]
        );
      });
      if (!selects) facts.fail('isolated', `pod ${name} is made, and no NetworkPolicy selects it`);
    }
    if (storage === POLICIES && type === 'DELETED') {
      const left = facts.server.list(pods).find(({ metadata }) => {
        return metadata.namespace === namespace && metadata.labels?.[LABEL_NETWORK] === labels?.[LABEL_NETWORK];
      });
      if (left)
        facts.fail('isolated', `NetworkPolicy ${name} is removed, and pod ${left.metadata.name} is still there`);
    }
  },
});
