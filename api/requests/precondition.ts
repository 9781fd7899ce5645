import { isOtherUID } from '../../core/kube/errors.ts';
import type { KubeApi, ObjectRef, Resource, ServerMeta } from '../../core/kube/types.ts';
import { Problem } from '../problems/problems.ts';

/**
 * Resolves with the answer to a change that has `uid` as its precondition in the cluster, where one is given. Rejects with
 * UIDMismatch where the object of this name has another.
 */
export async function onlyIf<T>(
  uid: string | undefined,
  change: Promise<T>,
  api: KubeApi,
  resource: Resource,
  ref: ObjectRef,
): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (uid === undefined || !isOtherUID(error)) throw error;
    refuseOther(await api.get(resource, ref), uid, resource);
    throw error;
  }
}

/** Throws UIDMismatch where the object has another UID than the one that the client gave. */
export function refuseOther(
  { metadata }: { metadata: Pick<ServerMeta, 'name' | 'uid'> },
  uid: string | undefined,
  { kind }: Pick<Resource, 'kind'>,
): void {
  if (uid === undefined || metadata.uid === uid) return;
  throw new Problem(
    'UIDMismatch',
    `${kind} "${metadata.name}" has the UID ${metadata.uid}, not ${uid}: the one that you mean was deleted, and another has its name. Nothing was changed.`,
  );
}
