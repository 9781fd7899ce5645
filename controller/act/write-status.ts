import type { KubeApi, KubeObject, Resource, Stored } from '../../core/kube/types.ts';

/**
 * Writes the status of the object at exactly the version that was decided upon: another writer in between gives 409
 * Conflict. The status endpoint takes nothing but the status, so the rest of the object need not be sent.
 */
export function writeStatus<T extends KubeObject & { status?: object }>(
  api: KubeApi,
  resource: Resource<T>,
  metadata: Pick<Stored['metadata'], 'namespace' | 'name' | 'uid' | 'resourceVersion'>,
  status: NonNullable<T['status']>,
  signal: AbortSignal,
  deadlineMs?: number,
): Promise<Stored<T>> {
  const { namespace, name, uid, resourceVersion } = metadata;
  const object = {
    apiVersion: `${resource.group}/${resource.version}`,
    kind: resource.kind,
    metadata: { ...(namespace === undefined ? {} : { namespace }), name, uid, resourceVersion },
    status,
  };
  return api.replace(resource, object as unknown as T, {
    subresource: 'status',
    signal,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
}
