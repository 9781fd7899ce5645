import { equal, isObject, type Json } from '../object.ts';
import { fieldSchema, type Schema } from '../validation/schema.ts';

/**
 * Set of fields of an object in the form of `metadata.managedFields`: paths whose steps are `f:name`,
 * `k:{"key":"value"}` for an item of a list map, `v:value` for a value of a set.
 */
export type FieldSet = Set<string>;

const separator = '\u0001';
const join = (path: string, step: string) => (path === '' ? step : `${path}${separator}${step}`);
/** Returns the path of nested fields. */
export const pathOf = (...fields: string[]) => fields.map((field) => `f:${field}`).join(separator);
export const stepsOf = (path: string) => path.split(separator);
export const parentOf = (path: string) => stepsOf(path).slice(0, -1).join(separator);

export const isBelow = (path: string, ancestor: string) => path.startsWith(`${ancestor}${separator}`);

const granularList = (schema: Schema) =>
  schema['x-kubernetes-list-type'] === 'map' || schema['x-kubernetes-list-type'] === 'set';

/** Returns the step to an item of a granular list. */
export function itemStep(item: unknown, schema: Schema): string {
  if (schema['x-kubernetes-list-type'] === 'set') return `v:${JSON.stringify(item)}`;
  const keys = [...(schema['x-kubernetes-list-map-keys'] ?? [])].sort();
  const values = isObject(item) ? item : {};
  const entries = keys.map((key) => [key, values[key] ?? schema.items?.properties?.[key]?.default ?? null]);
  return `k:${JSON.stringify(Object.fromEntries(entries))}`;
}

/** True for a value that is merged field by field; any other value has one owner as a whole. */
export const isGranular = (value: unknown, schema: Schema): value is Json | unknown[] =>
  Array.isArray(value) ? granularList(schema) : isObject(value) && schema['x-kubernetes-map-type'] !== 'atomic';

/** Returns the children of a granular value: step, value, schema. */
function children(value: Json | unknown[], schema: Schema): [string, unknown, Schema][] {
  if (Array.isArray(value)) return value.map((item) => [itemStep(item, schema), item, schema.items ?? {}]);
  return Object.entries(value).map(([key, child]) => [`f:${key}`, child, fieldSchema(schema, key) ?? {}]);
}

/**
 * Returns all fields of a value: its leaves and list items, and with `containers` the objects and lists around them.
 */
export function fieldsOf(
  value: unknown,
  schema: Schema,
  containers: boolean,
  path = '',
  into: FieldSet = new Set(),
): FieldSet {
  const granular = isGranular(value, schema);
  const below = granular ? children(value, schema) : [];
  const last = stepsOf(path).at(-1) ?? '';
  if (path !== '' && (below.length === 0 || containers || last.startsWith('k:'))) into.add(path);
  for (const [step, child, childSchema] of below) fieldsOf(child, childSchema, containers, join(path, step), into);
  return into;
}

/** Returns the value at a path; undefined where there is none. */
export function valueAt(value: unknown, schema: Schema, path: string): unknown {
  let here = value;
  let hereSchema: Schema = schema;
  for (const step of stepsOf(path)) {
    if (!isGranular(here, hereSchema)) return undefined;
    const found = children(here, hereSchema).find(([name]) => name === step);
    if (!found) return undefined;
    [, here, hereSchema] = found;
  }
  return here;
}

/** Returns the fields that are new or changed in `after`, and those that are gone. */
export function changedFields(
  before: unknown,
  after: unknown,
  schema: Schema,
): { changed: FieldSet; removed: FieldSet } {
  const old = fieldsOf(before, schema, true);
  const now = fieldsOf(after, schema, true);
  const changed: FieldSet = new Set();
  for (const path of now) {
    const value = valueAt(after, schema, path);
    const whole = typeof value !== 'object' || value === null || ![...now].some((other) => isBelow(other, path));
    if (!old.has(path) || (whole && !equal(value, valueAt(before, schema, path)))) changed.add(path);
  }
  return { changed, removed: old.difference(now) };
}

type Tree = { [step: string]: Tree };

export function toFieldsV1(set: FieldSet): Json {
  const root: Tree = {};
  const members = new Set<Tree>();
  for (const path of [...set].sort()) {
    let node = root;
    for (const step of stepsOf(path)) {
      node[step] ??= {};
      node = node[step];
    }
    members.add(node);
  }
  // A member with members below it is marked with a dot.
  for (const node of members) if (Object.keys(node).length > 0) node['.'] = {};
  return root;
}

export function fromFieldsV1(tree: unknown, path = '', into: FieldSet = new Set()): FieldSet {
  if (!isObject(tree)) return into;
  const steps = Object.keys(tree);
  if (path !== '' && (steps.length === 0 || steps.includes('.'))) into.add(path);
  for (const step of steps) if (step !== '.') fromFieldsV1(tree[step], join(path, step), into);
  return into;
}

/** Returns a path in the form of conflict messages: `.spec.parts[name="a"].count`. */
export function readable(path: string): string {
  return stepsOf(path)
    .map((step) => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      if (step.startsWith('v:')) return `[=${step.slice(2)}]`;
      const keys = Object.entries(JSON.parse(step.slice(2)) as Json);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');
}
