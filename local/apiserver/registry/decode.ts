import { badRequest, failure } from '../errors.ts';
import { type ApiObject, clone, equal, isObject, type Json } from '../object.ts';
import { applyDefaults, dropNulls, prune } from '../validation/shape.ts';
import { metadataShapeError } from './metadata.ts';
import { groupVersion, type ResourceType } from './types.ts';

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore';

const metadataFields = new Set([
  'name',
  'namespace',
  'generateName',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
  'selfLink',
]);

/**
 * Makes an object of the resource out of a request's body: right kind, unknown fields dropped (or refused, or warned
 * of), defaults filled in. Changes `body`.
 */
export function decode(
  body: unknown,
  type: ResourceType,
  fieldValidation: FieldValidation,
  warn: (text: string) => void,
): ApiObject {
  if (!isObject(body)) throw badRequest(`the body must be an object of kind ${type.kind}`);
  checkKind(body, type);
  body.metadata ??= {};
  const shape = metadataShapeError(body.metadata);
  if (shape)
    throw badRequest(`${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: ${shape}`);
  const metadata = body.metadata as Json;
  const unknown: string[] = [];
  for (const key of Object.keys(metadata)) {
    if (metadataFields.has(key)) continue;
    delete metadata[key];
    unknown.push(`metadata.${key}`);
  }
  const { schema } = type;
  if (schema) {
    dropNulls(body, schema);
    unknown.push(...prune(body, schema));
  }
  report(unknown, type, fieldValidation, warn);
  if (schema) applyDefaults(body, schema);
  return body as unknown as ApiObject;
}

function report(unknown: string[], type: ResourceType, mode: FieldValidation, warn: (text: string) => void): void {
  if (unknown.length === 0 || mode === 'Ignore') return;
  const texts = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
  if (mode === 'Warn') {
    for (const text of texts) warn(text);
    return;
  }
  throw badRequest(
    `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${texts.join(', ')}`,
  );
}

function checkKind(body: Json, type: ResourceType): void {
  const { apiVersion, kind } = body;
  const expected = groupVersion(type);
  if (type.custom && !kind) throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
  if (type.custom && !apiVersion) throw badRequest(`Object 'apiVersion' is missing in '${JSON.stringify(body)}'`);
  if (apiVersion !== undefined && apiVersion !== '' && apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  if (kind !== undefined && kind !== '' && kind !== type.kind) {
    throw failure(
      400,
      'BadRequest',
      `${kind} in version "${type.version}" cannot be handled as a ${type.kind}: no kind "${kind}" is registered for version "${expected}"`,
    );
  }
  body.apiVersion = expected;
  body.kind = type.kind;
}

const presented = new WeakMap<ResourceType, WeakMap<ApiObject, ApiObject>>();

/** A stored object as this version of the resource shows it: what the schema says today, also of older objects. */
export function present(object: ApiObject, type: ResourceType): ApiObject {
  if (!type.schema || !type.custom) return object;
  let cache = presented.get(type);
  if (!cache) {
    cache = new WeakMap();
    presented.set(type, cache);
  }
  let result = cache.get(object);
  if (!result) {
    const copy = clone(object);
    copy.apiVersion = groupVersion(type);
    dropNulls(copy, type.schema);
    prune(copy, type.schema);
    applyDefaults(copy, type.schema);
    result = equal(copy, object) ? object : copy;
    cache.set(object, result);
  }
  return result;
}
