import { badRequest, failure } from '../errors.ts';
import { invalidObject, required } from '../fields.ts';
import { type ApiObject, clone, equal, isObject, type Json } from '../object.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';
import { fieldSchema, type Schema } from '../validation/schema.ts';
import { prune } from '../validation/shape.ts';
import { validateValue } from '../validation/values.ts';
import {
  type FieldSet,
  fieldsOf,
  isBelow,
  isGranular,
  itemStep,
  parentOf,
  readable,
  stepsOf,
  valueAt,
} from './field-set.ts';
import { refreshLastApplied, takenOver } from './last-applied.ts';
import {
  isEntryOf,
  type Manager,
  newEntry,
  type Owner,
  ownersOf,
  toManagedFields,
  withoutIdentity,
} from './managers.ts';
import { typedSchema } from './schema.ts';

export interface ApplyOptions {
  manager: Manager;
  force: boolean;
  now: number;
}

/**
 * Checks the configuration in an apply request. Throws 422 without a manager, and 400 or 500 as the API server for a
 * body that is not such an object.
 */
export function checkConfiguration(body: unknown, type: ResourceType, name: string, manager: string | null): ApiObject {
  if (!manager) {
    throw invalidObject({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      required('fieldManager', 'is required for apply patch'),
    ]);
  }
  if (!isObject(body)) throw badRequest('error decoding YAML: the configuration is an object');
  const given = `${body.apiVersion ?? ''}, Kind=${body.kind ?? ''}`;
  if (body.apiVersion !== groupVersion(type) || body.kind !== type.kind)
    throw badRequest(`invalid object type: ${given}`);
  const metadata = isObject(body.metadata) ? body.metadata : {};
  if (metadata.name === undefined) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (metadata.managedFields) throw badRequest('metadata.managedFields must be nil');
  const problems = typeProblems(body, type);
  if (problems.length > 0) {
    const where = `${metadata.namespace ?? ''}/${metadata.name}; ${given}`;
    const text = problems.length === 1 ? problems[0] : `errors:\n${problems.map((each) => `  ${each}`).join('\n')}`;
    throw failure(500, '', `failed to create typed patch object (${where}): ${text}`);
  }
  return body as unknown as ApiObject;
}

function typeProblems(body: Json, type: ResourceType): string[] {
  const schema = typedSchema(type);
  const unknown = prune(clone(body), schema).map((path) => `.${path}: field not declared in schema`);
  const wrong = validateValue(body, schema)
    .filter(({ reason }) => reason === 'FieldValueTypeInvalid')
    .map(({ field, message }) => `.${field}: ${message}`);
  return [...unknown, ...wrong];
}

/**
 * Applies a configuration to an existing object: merges it and removes fields that this manager no longer wants. Throws
 * 409 on conflicts.
 */
export function applyConfiguration(
  live: ApiObject,
  configuration: ApiObject,
  type: ResourceType,
  options: ApplyOptions,
): ApiObject {
  const schema = typedSchema(type);
  const { manager, force, now } = options;
  const wanted = withoutIdentity(fieldsOf(configuration, schema, false));
  const owners = ownersOf(live, type);
  const own = owners.find(({ entry }) => isEntryOf(entry, manager));
  const others = owners.filter((owner) => owner !== own);

  const differing = new Set(
    [...wanted].filter((path) => {
      const current = valueAt(live, schema, path);
      return current !== undefined && !isItem(path) && !equal(current, valueAt(configuration, schema, path));
    }),
  );
  const allowed = takenOver(live, schema, manager.name);
  const contested = others
    .map((owner) => ({ owner, paths: owner.fields.intersection(differing).difference(allowed) }))
    .filter(({ paths }) => paths.size > 0);
  if (contested.length > 0 && !force) throw conflicts(contested);

  const merged = merge(live, configuration, schema) as ApiObject;
  const kept: FieldSet = others.reduce((all, { fields }) => all.union(fields), wanted);
  const dropped = own ? own.fields.difference(kept) : new Set<string>();
  // Parents are removed first: an item is removed as a whole unless another manager has set a field in it.
  for (const path of [...dropped].sort()) if (!isKeptBelow(path, kept)) removeField(merged, schema, path, kept);

  refreshLastApplied(merged, live, configuration, manager.name);
  const remaining = others.map((owner) => ({ ...owner, fields: owner.fields.difference(differing) }));
  const unchanged = own !== undefined && equal(own.fields, wanted) && equal(merged, live);
  const entry = unchanged ? own.entry : newEntry(manager, type, now);
  merged.metadata.managedFields = toManagedFields([...remaining, { entry, fields: wanted }]);
  return merged;
}

/** Returns the managers of an object that an apply creates. */
export function firstManagers(configuration: ApiObject, type: ResourceType, options: ApplyOptions): ApiObject {
  const fields = withoutIdentity(fieldsOf(configuration, typedSchema(type), false));
  const managedFields = toManagedFields([{ entry: newEntry(options.manager, type, options.now), fields }]);
  return { ...configuration, metadata: { ...configuration.metadata, managedFields } };
}

const isKeptBelow = (path: string, kept: FieldSet) => [...kept].some((other) => isBelow(other, path));

const isItem = (path: string) => !stepsOf(path).at(-1)?.startsWith('f:');

function conflicts(contested: { owner: Owner; paths: FieldSet }[]) {
  const causes = contested.flatMap(({ owner: { entry }, paths }) => {
    const using = entry.operation === 'Update' ? ` using ${entry.apiVersion}` : '';
    const subresource = entry.subresource ? ` with subresource ${JSON.stringify(entry.subresource)}` : '';
    const who = `${JSON.stringify(entry.manager)}${subresource}${using}`;
    return [...paths].sort().map((path) => ({ who, field: readable(path) }));
  });
  const managers = [...new Set(causes.map(({ who }) => who))].map((who) => {
    const fields = causes.filter((cause) => cause.who === who).map(({ field }) => field);
    return fields.length === 1
      ? `conflict with ${who}: ${fields[0]}`
      : `conflicts with ${who}:\n${fields.map((field) => `- ${field}`).join('\n')}`;
  });
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`;
  return failure(409, 'Conflict', `Apply failed with ${count}: ${managers.join('\n')}`, {
    causes: causes.map(({ who, field }) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${who}`,
      field,
    })),
  });
}

/** Merges granular values and replaces atomic ones. */
function merge(live: unknown, wanted: unknown, schema: Schema): unknown {
  if (Array.isArray(wanted) && Array.isArray(live) && isGranular(wanted, schema)) {
    const result = [...live];
    for (const item of wanted) {
      const step = itemStep(item, schema);
      const index = result.findIndex((other) => itemStep(other, schema) === step);
      if (index < 0) result.push(item);
      else result[index] = merge(result[index], item, schema.items ?? {});
    }
    return result;
  }
  if (!isObject(wanted) || !isObject(live) || !isGranular(wanted, schema)) return clone(wanted);
  const result: Json = { ...live };
  for (const [key, value] of Object.entries(wanted)) {
    result[key] = Object.hasOwn(live, key) ? merge(live[key], value, fieldSchema(schema, key) ?? {}) : clone(value);
  }
  return result;
}

/** Removes a field, and empty parents that belong to no other manager. */
function removeField(object: unknown, schema: Schema, path: string, kept: FieldSet): void {
  const parent = parentOf(path);
  const container = parent === '' ? object : valueAt(object, schema, parent);
  const step = stepsOf(path).at(-1) as string;
  if (Array.isArray(container)) {
    const listSchema = schemaAt(schema, parent);
    const index = container.findIndex((item) => itemStep(item, listSchema) === step);
    if (index >= 0) container.splice(index, 1);
  } else if (isObject(container)) delete container[step.slice(2)];
  const empty = isObject(container) || Array.isArray(container) ? Object.keys(container).length === 0 : false;
  if (empty && parent !== '' && parent !== 'f:metadata' && !kept.has(parent) && !isItem(parent)) {
    removeField(object, schema, parent, kept);
  }
}

function schemaAt(schema: Schema, path: string): Schema {
  let here: Schema = schema;
  for (const step of stepsOf(path))
    here = (step.startsWith('f:') ? fieldSchema(here, step.slice(2)) : here.items) ?? {};
  return here;
}
