import { duplicate, type FieldError } from '../fields.ts';
import { isObject, type Json } from '../object.ts';
import { fieldSchema, listMapKey, type Schema } from './schema.ts';

/** Returns the items of list maps and sets that occur twice. */
export function duplicateItems(value: unknown, schema: Schema, path = ''): FieldError[] {
  if (Array.isArray(value)) {
    const errors: FieldError[] = [];
    const seen = new Set<string>();
    value.forEach((item, i) => {
      const listType = schema['x-kubernetes-list-type'];
      if (listType === 'map' || listType === 'set') {
        const identity = listType === 'map' ? listMapKey(item, schema) : JSON.stringify(item);
        if (seen.has(identity))
          errors.push(duplicate(`${path}[${i}]`, listType === 'map' ? keysOf(item, schema) : item));
        seen.add(identity);
      }
      if (schema.items) errors.push(...duplicateItems(item, schema.items, `${path}[${i}]`));
    });
    return errors;
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const childSchema = fieldSchema(schema, key);
    if (!childSchema) return [];
    const inMap = !(schema.properties && Object.hasOwn(schema.properties, key));
    const childPath = inMap ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
    return duplicateItems(child, childSchema, childPath);
  });
}

function keysOf(item: unknown, schema: Schema): Json {
  const object = (item ?? {}) as Json;
  return Object.fromEntries((schema['x-kubernetes-list-map-keys'] ?? []).map((key) => [key, object[key]]));
}
