import type { StoredPod } from '../../core/kube/builtin.ts';
import { isUnclaimed, sessionNameOf } from './session-pods.ts';
import type { CachedTurn } from './world.ts';

/** Keys `namespace/name` of the sessions that have pods, and then of those that have turns to run or to count. */
export function urgentKeys(caches: { allPods(): StoredPod[]; allTurns(): CachedTurn[] }): Set<string> {
  const pods = caches.allPods().filter((pod) => !isUnclaimed(pod));
  return new Set([
    ...pods.map((pod) => `${pod.metadata.namespace}/${sessionNameOf(pod)}`),
    ...caches.allTurns().map(({ metadata, spec }) => `${metadata.namespace}/${spec.session}`),
  ]);
}
