import { badRequest, expired, failure } from '../errors.ts';
import type { ApiObject } from '../object.ts';
import { both, type FieldReader, fieldSelector, labelSelector, type Selector } from '../store/selectors.ts';
import { keyOf } from '../store/versioned.ts';
import { present } from './decode.ts';
import type { Registry } from './registry.ts';
import type { ResourceType } from './types.ts';

export interface ListRequest {
  selector: Selector;
  limit?: number | undefined;
  continue?: string | undefined;
  resourceVersion?: string | undefined;
  resourceVersionMatch?: string | undefined;
}

export interface ListResult {
  items: ApiObject[];
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
}

/** Combines the selectors of a request. Throws 400 for a selector that cannot be parsed or is not supported. */
export function selectorOf(type: ResourceType, labels: string | null, fields: string | null): Selector {
  return both(labelSelector(labels), fieldSelector(fields, { ...metadataFields(type), ...type.selectable }));
}

function metadataFields(type: ResourceType): Record<string, FieldReader> {
  const name: FieldReader = (object) => object.metadata.name;
  const namespace: FieldReader = (object) => object.metadata.namespace ?? '';
  return { 'metadata.name': name, ...(type.namespaced ? { 'metadata.namespace': namespace } : {}) };
}

/** Returns a list as of one version, in pages if asked for. Throws 410 when a page's version is no longer known. */
export function listObjects(
  registry: Registry,
  type: ResourceType,
  namespace: string | undefined,
  request: ListRequest,
): ListResult {
  const { store } = registry;
  const page = request.continue ? decodeContinue(request.continue) : undefined;
  const version = page?.version ?? listVersion(request, store.version);
  let items: ApiObject[];
  try {
    items = store.listAt(type.storage, namespace, version);
  } catch (error) {
    if (page) throw expired('The provided continue parameter is too old to display a consistent list result.');
    throw error;
  }
  if (page) items = items.filter((object) => keyOf(object.metadata.namespace, object.metadata.name) > page.after);
  items = items.map((object) => present(object, type)).filter(request.selector);
  const metadata: ListResult['metadata'] = { resourceVersion: String(version) };
  const limit = request.resourceVersion === '0' ? undefined : request.limit;
  if (limit && items.length > limit) {
    const last = items[limit - 1] as ApiObject;
    metadata.continue = encodeContinue({ version, after: keyOf(last.metadata.namespace, last.metadata.name) });
    metadata.remainingItemCount = items.length - limit;
    items = items.slice(0, limit);
  }
  return { items, metadata };
}

function listVersion(request: ListRequest, current: number): number {
  const { resourceVersion } = request;
  if (!resourceVersion || resourceVersion === '0') return current;
  const version = parseVersion(resourceVersion);
  if (version > current) throw tooLargeVersion(version, current);
  return request.resourceVersionMatch === 'Exact' ? version : current;
}

/** Parses a version; throws 400 for other text. */
export function parseVersion(text: string): number {
  if (!/^\d{1,15}$/.test(text)) {
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  return Number(text);
}

const tooLargeVersion = (version: number, current: number) =>
  failure(504, 'Timeout', `Timeout: Too large resource version: ${version}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

interface Page {
  version: number;
  after: string;
}

const encodeContinue = (page: Page) =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: page.version, start: page.after })).toString('base64url');

function decodeContinue(token: string): Page {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString()) as { rv: number; start: string };
    if (Number.isSafeInteger(rv) && typeof start === 'string') return { version: rv, after: start };
  } catch {
    // The token is invalid and is refused below.
  }
  throw badRequest('invalid continue token: continue key is not valid');
}
