import type { StoredPod } from '../../core/kube/builtin.ts';
import type { OwnerReference } from '../../core/kube/types.ts';
import { sessionOwner } from '../../core/resources/kinds.ts';
import {
  API_GROUP,
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_POOL_UID,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  podName,
  poolOfPod,
} from '../../core/resources/names.ts';
import { isPodOf } from '../../core/resources/session-pod.ts';
import type { CachedSession } from './world.ts';

/** The name of the session that owns the pod; the label counts only without an owner, since anyone may change it. */
export function sessionNameOf({ metadata }: Pick<StoredPod, 'metadata'>): string {
  return sessionOwner(metadata)?.name ?? metadata.labels?.[LABEL_SESSION] ?? '';
}

/**
 * Reports whether this installation made the pod for a session. The pod's name and labels must agree on the session's
 * uid and incarnation, and the session must own it; `managed-by` may have been changed. A pod that an orphaning deletion
 * left without owners must still have Berth's `managed-by`.
 */
export function isSessionPod({ metadata }: Pick<StoredPod, 'metadata'>): boolean {
  const { name, labels = {}, ownerReferences = [] } = metadata;
  const uid = labels[LABEL_SESSION_UID];
  if (!uid) return false;
  if (name !== podName(uid, Number(labels[LABEL_INCARNATION])) && !isFromPool(name)) return false;
  if (ownerReferences.length === 0) return labels[LABEL_MANAGED_BY] === MANAGED_BY;
  return ownerReferences.some((owner) => isOf(owner, uid) && owner.apiVersion.startsWith(`${API_GROUP}/`));
}

/** Reports whether a pod of this name was made by a pool, whether a session has claimed it or not. */
export function isFromPool(name: string | undefined): boolean {
  return name !== undefined && poolOfPod(name) !== undefined;
}

/**
 * Reports whether the pod belongs to a pool and no session has claimed it. Its name, labels and owner must agree on the
 * pool's uid; a pod that an orphaning deletion left without owners must still have Berth's `managed-by`.
 */
export function isUnclaimed({ metadata }: Pick<StoredPod, 'metadata'>): boolean {
  const { name, labels = {}, ownerReferences = [] } = metadata;
  const pool = poolOfPod(name);
  if (pool === undefined || labels[LABEL_POOL_UID] !== pool || labels[LABEL_SESSION_UID] !== '') return false;
  if (ownerReferences.length === 0) return labels[LABEL_MANAGED_BY] === MANAGED_BY;
  return ownerReferences.some(
    ({ kind, uid, apiVersion }) => kind === 'SessionPool' && uid === pool && apiVersion.startsWith(`${API_GROUP}/`),
  );
}

/** Reports whether a controller made or claimed the pod for the session's present incarnation. */
export function isOurs(pod: Pick<StoredPod, 'metadata'>, { metadata: { uid }, status }: CachedSession): boolean {
  return status?.incarnation !== undefined && isPodOf(pod, { session: uid, incarnation: status.incarnation });
}

function isOf(owner: OwnerReference, uid: string): boolean {
  return owner.kind === 'Session' && owner.uid === uid;
}
