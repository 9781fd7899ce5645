import type { Catalogue } from '../registry/catalogue.ts';
import type { ResourceType } from '../registry/types.ts';
import type { RequestFacts } from '../types.ts';

/** Parsed request for a resource. */
export interface ResourceRequest {
  group: string;
  version: string;
  plural: string;
  /** Undefined when no such resource is served. */
  type: ResourceType | undefined;
  namespace: string | undefined;
  name: string | undefined;
  subresource: string | undefined;
  /** Path after the subresource, as in a proxy path. */
  rest: string[];
}

/** Parses the path of a resource; undefined for all other paths. */
export function parseResourcePath(path: string, catalogue: Catalogue): ResourceRequest | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode);
  const root = parts.shift();
  if (root !== 'api' && root !== 'apis') return undefined;
  const group = root === 'apis' ? (parts.shift() ?? '') : '';
  const version = parts.shift();
  if (version === undefined || parts.length === 0) return undefined;

  let namespace: string | undefined;
  // /namespaces/NAME and its subresources are about the namespace itself.
  const own = parts.length <= 2 || (parts.length === 3 && namespaceSubresources.has(parts[2] as string));
  if (parts[0] === 'namespaces' && !own) [, namespace] = parts.splice(0, 2);
  const [plural, name, subresource, ...rest] = parts as [string, ...string[]];
  if (plural === 'namespaces' && group === '') namespace = undefined;
  return { group, version, plural, type: catalogue.find(group, version, plural), namespace, name, subresource, rest };
}

const namespaceSubresources = new Set(['status', 'finalize']);

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the verb of a request for authorization. */
export function verbOf(method: string, request: ResourceRequest | undefined, query: URLSearchParams): string {
  if (!request) return method.toLowerCase();
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (isTrue(query.get('watch'))) return 'watch';
      return request.name === undefined ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return request.name === undefined ? 'deletecollection' : 'delete';
    default:
      return method.toLowerCase();
  }
}

/** Returns the name of the one object that a list or watch selects: rights for single names cover it. */
export function nameSelected(verb: string, query: URLSearchParams): string | undefined {
  if (verb !== 'list' && verb !== 'watch' && verb !== 'deletecollection') return undefined;
  return /(?:^|,)metadata\.name==?([^,=]+)(?:,|$)/.exec(query.get('fieldSelector') ?? '')?.[1];
}

export const isTrue = (value: string | null) => value === 'true' || value === '1';

export function factsOf(
  method: string,
  path: string,
  verb: string,
  request: ResourceRequest | undefined,
  user: string,
): RequestFacts {
  return {
    method,
    path,
    verb,
    user,
    ...(request ? { resource: request.plural } : {}),
    ...(request?.subresource !== undefined ? { subresource: request.subresource } : {}),
    ...(request?.namespace !== undefined ? { namespace: request.namespace } : {}),
    ...(request?.name !== undefined ? { name: request.name } : {}),
  };
}
