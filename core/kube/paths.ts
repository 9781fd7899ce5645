import type { ObjectRef, Resource } from './types.ts';

/** Query parameters; undefined ones are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** Returns `?a=b` of the parameters that are set, or the empty string. */
export function queryString(query: Query | undefined): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parts.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  }
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** Returns `v1` or `berth.dev/v1alpha1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** Returns the path of a resource's collection: of one namespace, or of all when `namespace` is absent. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? '/api' : '/apis';
  const scope = resource.namespaced && namespace !== undefined ? `/namespaces/${segment(namespace)}` : '';
  return `${root}/${apiVersionOf(resource)}${scope}/${resource.plural}`;
}

/**
 * Returns the path of one object, or of its subresource. Throws TypeError when the reference does not name one object.
 */
export function objectPath(resource: Resource, ref: ObjectRef, subresource?: string): string {
  if (resource.namespaced && !ref.namespace) {
    throw new TypeError(`${resource.kind} ${ref.name} is namespaced: its reference needs a namespace`);
  }
  const path = `${collectionPath(resource, ref.namespace)}/${segment(ref.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Returns a name as one path segment. An empty or dotted name would address another path, so it is an error. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') {
    throw new TypeError(`${JSON.stringify(name)} cannot be the name of a Kubernetes object`);
  }
  return encodeURIComponent(name);
}
