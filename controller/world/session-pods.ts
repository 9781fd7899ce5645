import type { StoredPod } from '../../core/kube/builtin.ts';
import type { OwnerReference } from '../../core/kube/types.ts';
import { sessionOwner } from '../../core/resources/kinds.ts';
import {
  API_GROUP,
  LABEL_INCARNATION,
  LABEL_MANAGED_BY,
  LABEL_SESSION,
  LABEL_SESSION_UID,
  MANAGED_BY,
  podName,
} from '../../core/resources/names.ts';
import type { CachedSession } from './world.ts';

/** The name of the session that the pod is for: its owner's, as a label can have been changed. */
export function sessionNameOf({ metadata }: Pick<StoredPod, 'metadata'>): string {
  return sessionOwner(metadata)?.name ?? metadata.labels?.[LABEL_SESSION] ?? '';
}

/**
 * Whether this installation made the pod for a session. Its name and its labels must agree on the session's uid and the
 * incarnation, and the session own it, whatever people or policies have made of `managed-by`; or, as an orphaning deletion
 * leaves it, nobody owns it and `managed-by` is still Berth's.
 */
export function isSessionPod({ metadata }: Pick<StoredPod, 'metadata'>): boolean {
  const { name, labels = {}, ownerReferences = [] } = metadata;
  const uid = labels[LABEL_SESSION_UID];
  if (uid === undefined || name !== podName(uid, Number(labels[LABEL_INCARNATION]))) return false;
  if (ownerReferences.length === 0) return labels[LABEL_MANAGED_BY] === MANAGED_BY;
  return ownerReferences.some((owner) => isOf(owner, uid) && owner.apiVersion.startsWith(`${API_GROUP}/`));
}

/**
 * Whether this controller made the pod for the session's present incarnation. Its name, by which it was found, can be taken
 * by anybody who may create pods; owner and labels together are what the controller gives.
 */
export function isOurs(
  { metadata }: Pick<StoredPod, 'metadata'>,
  { metadata: { uid }, status }: CachedSession,
): boolean {
  const { labels = {}, ownerReferences = [] } = metadata;
  return (
    labels[LABEL_SESSION_UID] === uid &&
    labels[LABEL_INCARNATION] === String(status?.incarnation) &&
    ownerReferences.some((owner) => isOf(owner, uid))
  );
}

function isOf(owner: OwnerReference, uid: string): boolean {
  return owner.kind === 'Session' && owner.uid === uid;
}
