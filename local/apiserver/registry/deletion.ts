import { conflict } from '../errors.ts';
import { type ApiObject, clone, timestamp } from '../object.ts';
import type { Registry } from './registry.ts';
import type { ResourceType } from './types.ts';

export interface DeleteRequest {
  preconditions?: { uid?: string; resourceVersion?: string } | undefined;
  gracePeriodSeconds?: number | undefined;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan' | undefined;
  dryRun: boolean;
  /** Refuses the deletion of an object by an admission policy; absent: none applies. */
  admit?(object: ApiObject): void;
}

export const foregroundFinalizer = 'foregroundDeletion';
export const orphanFinalizer = 'orphan';

/**
 * Result of a deletion. `gone`: the object is deleted. Otherwise it is marked, and the kubelet or the owners of its
 * finalizers must finish.
 */
export interface Deletion {
  gone: boolean;
  object: ApiObject;
}

/** Deletes an object, or marks it as being deleted if it has a grace period or finalizers. */
export function deleteObject(
  registry: Registry,
  type: ResourceType,
  namespace: string | undefined,
  name: string,
  request: DeleteRequest,
): Deletion {
  const current = registry.get(type, namespace, name);
  checkPreconditions(type, current, request);
  request.admit?.(current);
  const marked = clone(current);
  const { metadata } = marked;
  const now = registry.clock.now();
  setFinalizers(marked, request.propagationPolicy);
  const held = (metadata.finalizers?.length ?? 0) > 0 || type.holdsDeletion?.(marked) === true;
  const grace = type.graceSeconds?.(current, request.gracePeriodSeconds) ?? 0;
  const before = current.metadata;

  if (before.deletionTimestamp === undefined) {
    if (grace === 0 && !held) return finish(registry, type, current, request);
    metadata.deletionTimestamp = timestamp(now + grace * 1000);
    metadata.deletionGracePeriodSeconds = grace;
    if (metadata.generation) metadata.generation += 1;
  } else {
    const left = before.deletionGracePeriodSeconds ?? 0;
    const asked = request.gracePeriodSeconds;
    const shorter = asked !== undefined && asked < left;
    if ((left === 0 || (shorter && asked === 0)) && !held) return finish(registry, type, current, request);
    if (shorter) {
      const started = Date.parse(before.deletionTimestamp) - left * 1000;
      metadata.deletionTimestamp = timestamp(Math.max(now, started + asked * 1000));
      metadata.deletionGracePeriodSeconds = asked;
    } else if (same(metadata.finalizers, before.finalizers)) {
      return { gone: false, object: current };
    }
  }
  return { gone: false, object: request.dryRun ? marked : registry.force(type, marked) };
}

function finish(registry: Registry, type: ResourceType, object: ApiObject, request: DeleteRequest): Deletion {
  return { gone: true, object: request.dryRun ? object : registry.store.remove(type.storage, object) };
}

const same = (a: string[] | undefined, b: string[] | undefined) => (a ?? []).join() === (b ?? []).join();

/** Stores the policy as a finalizer, which the garbage collector carries out. */
function setFinalizers(object: ApiObject, policy: DeleteRequest['propagationPolicy']): void {
  if (policy === undefined) return;
  const others = (object.metadata.finalizers ?? []).filter((f) => f !== foregroundFinalizer && f !== orphanFinalizer);
  if (policy === 'Foreground') others.push(foregroundFinalizer);
  if (policy === 'Orphan') others.push(orphanFinalizer);
  if (others.length > 0) object.metadata.finalizers = others;
  else delete object.metadata.finalizers;
}

function checkPreconditions(type: ResourceType, object: ApiObject, { preconditions }: DeleteRequest): void {
  const { name, uid, resourceVersion } = object.metadata;
  // The API server names the kind here where it names the resource elsewhere.
  const named = { group: type.group, plural: type.kind };
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    throw conflict(
      named,
      name,
      `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    );
  }
  if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    throw conflict(
      named,
      name,
      `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    );
  }
}
