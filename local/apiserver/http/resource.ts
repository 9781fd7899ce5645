import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdmissionPolicies } from '../admission/policies.ts';
import type { AdmissionRequest } from '../admission/request.ts';
import { applyConfiguration, checkConfiguration, firstManagers } from '../apply/apply.ts';
import { badRequest, methodNotAllowed } from '../errors.ts';
import { invalidObject, notSupported } from '../fields.ts';
import { type ApiObject, clone, isObject, type Json } from '../object.ts';
import { applyType, patcher } from '../patch/patch.ts';
import { scaleOf, withReplicas } from '../registry/crd/custom.ts';
import type { FieldValidation } from '../registry/decode.ts';
import { type DeleteRequest, deleteObject } from '../registry/deletion.ts';
import { listObjects, selectorOf } from '../registry/listing.ts';
import type { Registry, WriteRequest } from '../registry/registry.ts';
import { groupVersion, type ResourceType, type Verb } from '../registry/types.ts';
import type { UserInfo } from '../types.ts';
import { mediaType, type Numbers, parseObject, parsePatch, readBody } from './body.ts';
import { isTrue, type ResourceRequest } from './request.ts';
import { addWarning, sendJson } from './respond.ts';
import { partial, render, table, viewOf } from './table.ts';
import { Watch, type WatchHub } from './watch.ts';

/** A request for a resource, authorized and with a known type. */
export interface Call {
  req: IncomingMessage;
  res: ServerResponse;
  query: URLSearchParams;
  user: UserInfo;
  verb: string;
  request: ResourceRequest;
  type: ResourceType;
  admission: AdmissionPolicies;
}

/** Handles the verbs on objects and on their status and scale. */
export async function handleResource(call: Call, registry: Registry, hub: WatchHub): Promise<void> {
  const { type, verb, request } = call;
  if (!type.verbs.includes(verb as Verb)) throw methodNotAllowed();
  if (request.name === undefined && (verb === 'update' || verb === 'patch')) {
    throw type.custom ? badRequest('name must be provided') : methodNotAllowed();
  }
  if (request.subresource === 'scale') return handleScale(call, registry);
  switch (verb) {
    case 'get':
      return sendObject(call, registry, 200, registry.get(type, request.namespace, request.name as string));
    case 'list':
      return list(call, registry);
    case 'watch':
      return watch(call, hub);
    case 'create':
      return create(call, registry);
    case 'update':
    case 'patch':
      return update(call, registry);
    case 'delete':
      return remove(call, registry);
    case 'deletecollection':
      return removeAll(call, registry);
    default:
      throw methodNotAllowed();
  }
}

function sendObject(call: Call, registry: Registry, code: number, object: Parameters<typeof render>[0]): void {
  const view = viewOf(call.req.headers.accept, call.query);
  sendJson(call.res, code, render(object, call.type, view, registry.clock.now()));
}

/** Selects a single object by its name for a list or watch. */
function selectorFor({ type, query, request }: Call) {
  const fields = query.get('fieldSelector');
  const byName = request.name === undefined ? undefined : `metadata.name=${request.name}`;
  return selectorOf(type, query.get('labelSelector'), byName ? [byName, fields].filter(Boolean).join(',') : fields);
}

function list(call: Call, registry: Registry) {
  const { type, query, request, res, req } = call;
  const limit = Number(query.get('limit') ?? 0);
  const result = listObjects(registry, type, request.namespace, {
    selector: selectorFor(call),
    limit: limit > 0 ? limit : undefined,
    continue: query.get('continue') ?? undefined,
    resourceVersion: query.get('resourceVersion') ?? undefined,
    resourceVersionMatch: query.get('resourceVersionMatch') ?? undefined,
  });
  if (query.get('labelSelector') || query.get('fieldSelector')) delete result.metadata.remainingItemCount;
  const view = viewOf(req.headers.accept, query);
  if (view.as === 'table') {
    return sendJson(res, 200, table(type, result.items, result.metadata, view, registry.clock.now()));
  }
  const whole = {
    kind: type.listKind,
    apiVersion: groupVersion(type),
    metadata: result.metadata,
    items: result.items.map((item) => asListItem(item, type)),
  };
  const metadataOnly = {
    ...whole,
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    // The real API server writes null for an empty list.
    items: result.items.length === 0 ? null : result.items.map(partial),
  };
  sendJson(res, 200, view.as === 'metadata' ? metadataOnly : whole);
}

/** Items of a list of a built-in kind do not repeat the kind. */
function asListItem(object: ApiObject, type: ResourceType): object {
  if (type.custom) return object;
  const { kind: _, apiVersion: __, ...rest } = object;
  return rest;
}

function watch(call: Call, hub: WatchHub): void {
  const selector = selectorFor(call);
  const view = viewOf(call.req.headers.accept, call.query);
  new Watch(hub, call.type, view, call.res).start(call.request.namespace, selector, call.query);
}

const invalidOptions = (field: string, value: unknown, supported: string[], kind = 'CreateOptions') =>
  invalidObject({ group: 'meta.k8s.io', kind }, '', [notSupported(field, value, supported)]);

/** Returns the facts by which admission policies judge a write, besides its objects. */
function admissionRequest(
  { user, type, request }: Call,
  operation: AdmissionRequest['operation'],
  dryRun: boolean,
): AdmissionRequest {
  const { group, version, plural, kind } = type;
  return {
    user,
    operation,
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    subresource: request.subresource,
    namespace: request.namespace,
    name: request.name,
    dryRun,
  };
}

/** Returns the write options of the query. Throws 422 for invalid values. */
function writeRequest(call: Call): WriteRequest {
  const { query, user, req, res, admission } = call;
  const fieldValidation = query.get('fieldValidation') || 'Warn';
  const dryRun = query.getAll('dryRun');
  if (!['Strict', 'Warn', 'Ignore'].includes(fieldValidation)) {
    throw invalidOptions('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']);
  }
  if (dryRun.some((value) => value !== 'All' && value !== '')) {
    throw invalidOptions('dryRun', dryRun, ['All']);
  }
  const isDryRun = dryRun.includes('All');
  return {
    user,
    fieldValidation: fieldValidation as FieldValidation,
    dryRun: isDryRun,
    fieldManager: query.get('fieldManager') || (req.headers['user-agent'] ?? 'unknown').split('/')[0] || 'unknown',
    warn: (text) => addWarning(res, text),
    admit(object, oldObject) {
      const asked = admissionRequest(call, oldObject ? 'UPDATE' : 'CREATE', isDryRun);
      admission.validate({ ...asked, name: object.metadata.name, object, oldObject });
    },
  };
}

const numbersOf = ({ custom }: ResourceType): Numbers => (custom ? 'Exact' : 'Doubles');

async function create(call: Call, registry: Registry): Promise<void> {
  const { type, request, req } = call;
  if (request.name !== undefined) throw methodNotAllowed();
  const body = await parseObject(await readBody(req), mediaType(req), numbersOf(type));
  sendObject(call, registry, 201, registry.create(type, request.namespace, body, writeRequest(call)));
}

async function update(call: Call, registry: Registry): Promise<void> {
  const { type, request, req, verb } = call;
  const name = request.name as string;
  const subresource = request.subresource === 'status' ? 'status' : undefined;
  const bytes = await readBody(req);
  if (verb === 'update') {
    const body = await parseObject(bytes, mediaType(req), numbersOf(type));
    const options = { subresource, replace: true } as const;
    const object = registry.update(type, request.namespace, name, () => body, writeRequest(call), options);
    return sendObject(call, registry, 200, object);
  }
  const body = await parsePatch(bytes, mediaType(req), numbersOf(type));
  if (mediaType(req) === applyType) return apply(call, registry, body, subresource);
  const patch = patcher(type, mediaType(req), body);
  const object = registry.update(type, request.namespace, name, patch, writeRequest(call), { subresource });
  sendObject(call, registry, 200, object);
}

/** Handles server-side apply, which creates a missing object. */
function apply(call: Call, registry: Registry, body: unknown, subresource: 'status' | undefined) {
  const { type, request, query } = call;
  const name = request.name as string;
  const fieldManager = query.get('fieldManager');
  const configuration = checkConfiguration(body, type, name, fieldManager);
  const manager = { name: fieldManager as string, operation: 'Apply', subresource } as const;
  const options = { manager, force: isTrue(query.get('force')), now: registry.clock.now() };
  const exists = registry.store.get(type.storage, request.namespace, name) !== undefined;
  if (!exists && subresource === undefined) {
    if (configuration.metadata.name !== name) {
      const given = configuration.metadata.name;
      throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
    }
    const first = firstManagers(configuration, type, options);
    return sendObject(call, registry, 201, registry.create(type, request.namespace, first, writeRequest(call)));
  }
  const produce = (current: ApiObject) => applyConfiguration(current, configuration, type, options);
  const updated = registry.update(type, request.namespace, name, produce, writeRequest(call), {
    subresource,
    applied: true,
  });
  sendObject(call, registry, 200, updated);
}

async function deleteRequest(call: Call): Promise<DeleteRequest> {
  const { req, query, admission } = call;
  const bytes = await readBody(req);
  const body = bytes.length > 0 ? await parseObject(bytes, mediaType(req)) : {};
  if (!isObject(body)) throw badRequest('the body must be DeleteOptions');
  const { preconditions, gracePeriodSeconds, propagationPolicy, orphanDependents, dryRun } = body as Json;
  const seconds =
    gracePeriodSeconds ?? (query.has('gracePeriodSeconds') ? Number(query.get('gracePeriodSeconds')) : undefined);
  const policy =
    propagationPolicy ?? query.get('propagationPolicy') ?? (orphanDependents === true ? 'Orphan' : undefined);
  if (policy !== undefined && !['Background', 'Foreground', 'Orphan'].includes(policy as string)) {
    const policies = ['Foreground', 'Background', 'Orphan', 'nil'];
    throw invalidOptions('propagationPolicy', policy, policies, 'DeleteOptions');
  }
  const isDryRun = query.get('dryRun') === 'All' || (Array.isArray(dryRun) && dryRun.includes('All'));
  return {
    preconditions: preconditions as DeleteRequest['preconditions'],
    gracePeriodSeconds: seconds as number | undefined,
    propagationPolicy: policy as DeleteRequest['propagationPolicy'],
    dryRun: isDryRun,
    admit: (oldObject) => admission.validate({ ...admissionRequest(call, 'DELETE', isDryRun), oldObject }),
  };
}

async function remove(call: Call, registry: Registry): Promise<void> {
  const { type, request, res } = call;
  if (request.subresource !== undefined) throw methodNotAllowed();
  const { gone, object } = deleteObject(
    registry,
    type,
    request.namespace,
    request.name as string,
    await deleteRequest(call),
  );
  if (!gone || type.returnsDeleted) return sendObject(call, registry, 200, object);
  sendJson(res, 200, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: object.metadata.name,
      ...(type.group ? { group: type.group } : {}),
      kind: type.plural,
      uid: object.metadata.uid,
    },
  });
}

async function removeAll(call: Call, registry: Registry): Promise<void> {
  const { type, request, res } = call;
  const options = await deleteRequest(call);
  const { items, metadata } = listObjects(registry, type, request.namespace, { selector: selectorFor(call) });
  for (const { metadata: each } of items) deleteObject(registry, type, each.namespace, each.name, options);
  sendJson(res, 200, {
    kind: type.listKind,
    apiVersion: groupVersion(type),
    metadata,
    items: items.map((item) => asListItem(item, type)),
  });
}

async function handleScale(call: Call, registry: Registry): Promise<void> {
  const { type, request, req, res, verb } = call;
  const name = request.name as string;
  const current = registry.get(type, request.namespace, name);
  if (verb === 'get') return sendJson(res, 200, scaleOf(current, type));
  if (verb !== 'update' && verb !== 'patch') throw methodNotAllowed();
  const bytes = await readBody(req);
  const body = await (verb === 'update' ? parseObject : parsePatch)(bytes, mediaType(req));
  const produce = verb === 'update' ? () => body : patcher(type, mediaType(req), body);
  const object = registry.update(
    type,
    request.namespace,
    name,
    (stored) => {
      const scale = produce(scaleOf(stored, type));
      const replicas = isObject(scale) && isObject(scale.spec) ? (scale.spec.replicas ?? 0) : 0;
      if (!Number.isInteger(replicas) || (replicas as number) < 0) {
        throw badRequest(
          `spec.replicas: Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`,
        );
      }
      const changed = clone(stored);
      const version = isObject(scale) && isObject(scale.metadata) ? scale.metadata.resourceVersion : undefined;
      if (typeof version === 'string') changed.metadata.resourceVersion = version;
      withReplicas(changed, type, replicas as number);
      return changed;
    },
    // Admission policies would see a Scale, which they are not given.
    { ...writeRequest(call), admit: () => {} },
  );
  sendJson(res, 200, scaleOf(object, type));
}
