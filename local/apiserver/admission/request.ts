import type { ApiObject, Json } from '../object.ts';
import type { UserInfo } from '../types.ts';

/** A request as admission policies see it. */
export interface AdmissionRequest {
  user: UserInfo;
  operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  kind: { group: string; version: string; kind: string };
  resource: { group: string; version: string; resource: string };
  subresource?: string | undefined;
  /** Namespace; undefined for cluster-scoped resources. */
  namespace?: string | undefined;
  /** Name of the object, also one that the server generates; absent for each object of a deletecollection. */
  name?: string | undefined;
  /** Object as it would be stored, or the options of a CONNECT; absent for a DELETE. */
  object?: Json | ApiObject | undefined;
  /** Stored object before an UPDATE or DELETE. */
  oldObject?: ApiObject | undefined;
  dryRun: boolean;
}

/**
 * Returns the CEL variable `request`. As in the API server's AdmissionRequest, empty fields are absent, so that an
 * expression asks for them with `has`. `options` is not offered.
 */
export function requestVariable(request: AdmissionRequest): Json {
  const { user, operation, kind, resource, subresource, namespace, name, dryRun } = request;
  const { username, uid, groups, extra } = user;
  return {
    kind,
    resource,
    requestKind: kind,
    requestResource: resource,
    ...(subresource ? { subResource: subresource, requestSubResource: subresource } : {}),
    ...(name ? { name } : {}),
    ...(namespace ? { namespace } : {}),
    operation,
    userInfo: {
      username,
      ...(uid ? { uid } : {}),
      ...(groups.length > 0 ? { groups } : {}),
      ...(extra && Object.keys(extra).length > 0 ? { extra } : {}),
    },
    dryRun,
  };
}
