import type { StoredPod } from '../../core/kube/builtin.ts';
import { keyOf } from '../../core/kube/cache.ts';
import { LABEL_CLASS, LABEL_SESSION_UID } from '../../core/resources/names.ts';
import type { Caches } from '../caches/caches.ts';
import { sessionNameOf } from '../observed/session-pods.ts';
import type { CachedSession } from '../observed/world.ts';
import type { Holder } from './slot-usage.ts';

/**
 * The pod of an admitted session, by its key `namespace/name`, and the session as the holder of a slot. It counts from its
 * admission on, whether its pod is to be seen or not.
 */
export function admitted({ metadata, spec, status }: CachedSession): { pod: string; holder: Holder } | undefined {
  if (!status?.podName) return undefined;
  const namespace = metadata.namespace;
  const condition = status.conditions?.find(({ type, status }) => type === 'Admitted' && status === 'True');
  const since = Date.parse(condition?.lastTransitionTime ?? metadata.creationTimestamp);
  const holder = { name: `${namespace}/${metadata.name}`, namespace, class: spec.class, since };
  return { pod: keyOf({ namespace, name: status.podName }), holder };
}

/** The session that a pod belongs to as the holder of a slot, or the pod itself where its session is not known. */
export function holderOf(pod: StoredPod, caches: Pick<Caches, 'session'>): Holder {
  const { name, namespace, labels = {}, creationTimestamp } = pod.metadata;
  const session = caches.session(namespace, sessionNameOf(pod));
  const known = session?.metadata.uid === labels[LABEL_SESSION_UID] ? session : undefined;
  return {
    name: `${namespace}/${known ? known.metadata.name : `pod ${name}`}`,
    namespace,
    // A class's name may be too long for a label.
    class: known?.spec.class ?? labels[LABEL_CLASS],
    since: Date.parse(creationTimestamp),
  };
}
