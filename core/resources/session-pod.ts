/** The pod of a session's incarnation. */
import type { Pod } from '../kube/builtin.ts';
import { LABEL_INCARNATION, LABEL_SESSION_UID } from './names.ts';

/** The incarnation of a session that has a pod. */
export interface Incarnation {
  /** UID of the session. */
  session: string;
  incarnation: number;
}

/**
 * Reports whether a controller made or claimed the pod for this incarnation. Anyone who may create pods can take the name;
 * only the controller sets this owner together with these labels.
 */
export function isPodOf(
  { metadata: { labels = {}, ownerReferences = [] } }: Pick<Pod, 'metadata'>,
  { session, incarnation }: Incarnation,
): boolean {
  return (
    labels[LABEL_SESSION_UID] === session &&
    labels[LABEL_INCARNATION] === String(incarnation) &&
    ownerReferences.some(({ kind, uid }) => kind === 'Session' && uid === session)
  );
}
