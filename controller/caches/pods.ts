import type { Pod, StoredPod } from '../../core/kube/builtin.ts';
import { Informer } from '../../core/kube/informer.ts';
import { pods } from '../../core/kube/resources.ts';
import { LABEL_POOL_UID, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import { isSessionPod, isUnclaimed, sessionNameOf } from '../observed/session-pods.ts';
import { slimPod } from './slim.ts';
import type { RequiredTools } from './tools.ts';

export interface PodLister {
  pod(namespace: string, name: string): StoredPod | undefined;
  podsOf(sessionUID: string): StoredPod[];
  allPods(): StoredPod[];
  /** Pods of a pool that no session has claimed, by the pool's uid. */
  unclaimedPods(poolUID: string): StoredPod[];
}

const OF_SESSION = 'ofSession';
const OF_POOL = 'ofPool';

/** The cache of the pods of sessions and pools. */
export function podCache(tools: RequiredTools) {
  const informer = new Informer<Pod>({
    ...tools,
    resource: pods,
    // The selector avoids labels with a meaning to others: a change of one would hide the pod from its session.
    labelSelector: LABEL_SESSION_UID,
    keep: (pod) => isSessionPod(pod) || isUnclaimed(pod),
    transform: slimPod,
    indexes: {
      [OF_SESSION]: (pod) => [pod.metadata.labels?.[LABEL_SESSION_UID] ?? ''],
      [OF_POOL]: (pod) => (isUnclaimed(pod) ? [pod.metadata.labels?.[LABEL_POOL_UID] ?? ''] : []),
    },
  });
  const onPod = (gone: boolean) => (pod: StoredPod) => {
    tools.watchers.notify('pod', pod, gone);
    if (isUnclaimed(pod)) return;
    tools.watchers.notify('session', `${pod.metadata.namespace}/${sessionNameOf(pod)}`);
  };
  informer.addHandler({ add: onPod(false), update: onPod(false), delete: onPod(true) });
  /** Tells of the pods on a node whose facts have changed. */
  const onNode = (name: string) => {
    for (const pod of informer.list()) if (pod.spec.nodeName === name) onPod(false)(pod);
  };
  const lister: PodLister = {
    pod: (namespace, name) => informer.get(namespace, name),
    podsOf: (sessionUID) => informer.byIndex(OF_SESSION, sessionUID),
    allPods: () => informer.list(),
    unclaimedPods: (poolUID) => informer.byIndex(OF_POOL, poolUID),
  };
  return { informer, lister, onNode };
}
