import { readFileSync } from 'node:fs';
import type { Schema } from '../../validation/schema.ts';

/** Field names and types of the built-in kinds; made by scripts/builtin-types.ts. */
const types = JSON.parse(readFileSync(new URL('./types.json', import.meta.url), 'utf8')) as Record<
  string,
  Record<string, string>
>;

/** Amounts may be written as numbers. */
const quantityMaps = new Set(['allocatable', 'capacity', 'hard', 'limits', 'overhead', 'requests']);
const quantities = new Set(['divisor', 'sizeLimit']);
/** Maps of bytes in base64, by type. */
const byteMaps: Record<string, string> = { V1Secret: 'data', V1ConfigMap: 'binaryData' };

const anything: Schema = { 'x-kubernetes-preserve-unknown-fields': true };
const intOrString: Schema = { 'x-kubernetes-int-or-string': true };
const quantity: Schema = { ...intOrString, format: 'k8s-quantity' };
const bytes: Schema = { type: 'string', format: 'byte' };

const simple: Record<string, Schema> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  Date: { type: 'string', format: 'date-time' },
  V1MicroTime: { type: 'string', format: 'k8s-micro-time' },
  IntOrString: intOrString,
  object: { type: 'object', ...anything },
};

/** The schema of a built-in kind, by the name of its type. */
export function builtinSchema(name: string): Schema {
  const properties = Object.entries(types[name] ?? {}).map(([field, type]) => [
    field,
    byteMaps[name] === field ? { type: 'object', additionalProperties: bytes } : fieldType(field, type),
  ]);
  return { type: 'object', properties: Object.fromEntries(properties) };
}

function fieldType(field: string, type: string): Schema {
  if (quantities.has(field)) return quantity;
  const list = /^Array<(.*)>$/.exec(type)?.[1];
  if (list !== undefined) return { type: 'array', items: fieldType('', list) };
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (map !== undefined) {
    return { type: 'object', additionalProperties: quantityMaps.has(field) ? quantity : fieldType('', map) };
  }
  return simple[type] ?? (types[type] ? builtinSchema(type) : anything);
}
