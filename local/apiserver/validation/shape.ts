import { clone, isObject } from '../object.ts';
import { fieldSchema, type Schema } from './schema.ts';

/** Fields of an object's root that its schema need not have. */
const rootFields = new Set(['apiVersion', 'kind', 'metadata']);

/** Removes unknown fields in place and returns their paths (`spec.foo`, `spec.list[0].bar`). */
export function prune(object: unknown, schema: Schema, path = '', root = true): string[] {
  const removed: string[] = [];
  if (Array.isArray(object)) {
    if (schema.items) {
      object.forEach((item, i) => {
        removed.push(...prune(item, schema.items as Schema, `${path}[${i}]`, false));
      });
    }
    return removed;
  }
  if (!isObject(object)) return removed;
  const embedded = root || schema['x-kubernetes-embedded-resource'] === true;
  for (const key of Object.keys(object)) {
    if (embedded && rootFields.has(key)) continue;
    const child = fieldSchema(schema, key);
    const childPath = path === '' ? key : `${path}.${key}`;
    if (child) {
      removed.push(...prune(object[key], child, childPath, false));
    } else if (!schema['x-kubernetes-preserve-unknown-fields'] && schema.additionalProperties !== true) {
      delete object[key];
      removed.push(childPath);
    }
  }
  return removed;
}

/** Sets defaults in place; a null that is not allowed is replaced by a default. */
export function applyDefaults(object: unknown, schema: Schema): void {
  if (Array.isArray(object)) {
    if (schema.items) for (const item of object) applyDefaults(item, schema.items);
    return;
  }
  if (!isObject(object)) return;
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (child.default === undefined) continue;
    const value = Object.hasOwn(object, key) ? object[key] : undefined;
    if (value === undefined || (value === null && !child.nullable)) object[key] = clone(child.default);
  }
  for (const key of Object.keys(object)) {
    const child = fieldSchema(schema, key);
    if (child) applyDefaults(object[key], child);
  }
}

/** Removes nulls of fields that are neither nullable nor have a default, in place: they count as absent. */
export function dropNulls(object: unknown, schema: Schema): void {
  if (Array.isArray(object)) {
    if (schema.items) for (const item of object) dropNulls(item, schema.items);
    return;
  }
  if (!isObject(object)) return;
  for (const key of Object.keys(object)) {
    const child = fieldSchema(schema, key);
    if (child === undefined) continue;
    if (object[key] === null && !child.nullable && child.default === undefined) delete object[key];
    else dropNulls(object[key], child);
  }
}
