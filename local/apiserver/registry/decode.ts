import { isRawNumber } from '../../../core/json.ts';
import type { ApiError } from '../../../core/kube/errors.ts';
import { badRequest } from '../errors.ts';
import { invalid, invalidObject } from '../fields.ts';
import { type ApiObject, at, clone, equal, isObject, type Json, timestamp } from '../object.ts';
import { fieldSchema, type Schema } from '../validation/schema.ts';
import { applyDefaults, dropNulls, prune } from '../validation/shape.ts';
import { validateValue } from '../validation/values.ts';
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

/** Makes the error for an object that cannot be decoded; a patched object is quoted as a whole. */
type Refuse = (text: string) => ApiError;

const refusal =
  (type: ResourceType): Refuse =>
  (text) =>
    badRequest(`${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: ${text}`);

const patchRefusal =
  (patched: string): Refuse =>
  (text) =>
    invalidObject({ group: '', kind: '' }, '', [invalid('patch', patched, text)]);

/**
 * Decodes a request's body, or the result of a patch, to an object of the resource: checks the kind, drops (or refuses,
 * or warns of) unknown fields, sets defaults. Changes `body`.
 */
export function decode(
  body: unknown,
  type: ResourceType,
  options: { fieldValidation: FieldValidation; warn: (text: string) => void; patched?: boolean },
): ApiObject {
  if (!isObject(body)) throw badRequest(`the object provided is unrecognized (must be of type ${type.kind})`);
  const refuse = options.patched ? patchRefusal(JSON.stringify(body)) : refusal(type);
  checkKind(body, type, refuse);
  body.metadata ??= {};
  const shape = metadataShapeError(body.metadata);
  if (shape) throw refuse(shape);
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
    if (!type.custom) {
      checkTypes(body, schema, refuse);
      wholeSeconds(body, schema);
    }
  }
  const texts = unknown.sort().map((path) => `unknown field ${JSON.stringify(path)}`);
  if (texts.length > 0 && options.fieldValidation === 'Strict') {
    throw refuse(`strict decoding error: ${texts.join(', ')}`);
  }
  if (options.fieldValidation === 'Warn') for (const text of texts) options.warn(text);
  if (schema) applyDefaults(body, schema);
  return body as unknown as ApiObject;
}

/** Rounds times of built-in kinds to whole seconds, in place. */
function wholeSeconds(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    if (schema.items) for (const item of value) wholeSeconds(item, schema.items);
    return;
  }
  if (!isObject(value)) return;
  for (const [key, child] of Object.entries(value)) {
    const childSchema = fieldSchema(schema, key);
    if (!childSchema) continue;
    if (childSchema.format === 'date-time' && typeof child === 'string') value[key] = timestamp(Date.parse(child));
    else wholeSeconds(child, childSchema);
  }
}

/** Checks types like a decoder: a built-in kind is decoded into a struct, so a wrong type is a decoding error there. */
function checkTypes(body: Json, schema: Schema, refuse: Refuse): void {
  const [error] = validateValue(body, schema).filter(({ reason }) => reason === 'FieldValueTypeInvalid');
  if (error) throw refuse(`json: cannot unmarshal ${error.field}: ${error.message}`);
  const overflow = overflowIn(body, schema, '');
  if (overflow) throw refuse(`json: cannot unmarshal number ${overflow.value} into Go struct field ${overflow.as}`);
}

const INTEGERS: Record<string, { least: number; most: number }> = {
  int32: { least: -(2 ** 31), most: 2 ** 31 - 1 },
  int64: { least: -(2 ** 63), most: 2 ** 63 - 1024 },
};

/** The first number that the integer type of its field does not hold. */
function overflowIn(value: unknown, schema: Schema, path: string): { value: string; as: string } | undefined {
  if (Array.isArray(value)) {
    for (const item of value) {
      const overflow = schema.items && overflowIn(item, schema.items, path);
      if (overflow) return overflow;
    }
    return undefined;
  }
  if (typeof value === 'number' || isRawNumber(value)) {
    const text = typeof value === 'number' ? String(value) : value.rawJSON;
    const range = INTEGERS[schema.format ?? ''];
    const fits = !range || (Number(text) >= range.least && Number(text) <= range.most);
    return fits ? undefined : { value: text, as: `${path} of type ${schema.format}` };
  }
  if (!isObject(value)) return undefined;
  for (const [key, child] of Object.entries(value)) {
    const childSchema = fieldSchema(schema, key);
    const overflow = childSchema && overflowIn(child, childSchema, path === '' ? key : `${path}.${key}`);
    if (overflow) return overflow;
  }
  return undefined;
}

function checkKind(body: Json, type: ResourceType, refuse: Refuse): void {
  const { apiVersion, kind } = body;
  const expected = groupVersion(type);
  const given = (value: unknown) => value !== undefined && value !== null && value !== '';
  if (type.custom && !given(kind)) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${type.kind}): Object 'Kind' is missing in '${JSON.stringify(body)}'`,
    );
  }
  if ((type.custom || given(apiVersion)) && apiVersion !== expected) {
    throw type.custom || String(apiVersion).includes('/') !== expected.includes('/')
      ? badRequest(
          `the API version in the data (${apiVersion ?? ''}) does not match the expected API version (${expected})`,
        )
      : refuse(`no kind ${JSON.stringify(type.kind)} is registered for version ${JSON.stringify(apiVersion)}`);
  }
  if (given(kind) && kind !== type.kind) {
    if (!type.custom) throw refuse(`converting (${kind}) to (${type.kind}): unknown conversion`);
    const name = at(body, 'metadata', 'name');
    throw invalidObject({ group: type.group, kind: String(kind) }, typeof name === 'string' ? name : '', [
      invalid('kind', kind, `must be ${type.kind}`),
    ]);
  }
  body.apiVersion = expected;
  body.kind = type.kind;
}

const presented = new WeakMap<ResourceType, WeakMap<ApiObject, ApiObject>>();

/** Converts a stored object to this version of the resource. Today's schema also applies to older objects. */
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
