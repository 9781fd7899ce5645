import { evaluate } from '@marcbachmann/cel-js';
import { isInt64, isRawNumber } from '../../../core/json.ts';
import { isObject, type Json } from '../object.ts';
import { parseDuration } from './formats.ts';
import { fieldSchema, type Schema } from './schema.ts';

const reserved = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** Returns the name of a field in CEL. */
function celName(key: string): string {
  if (reserved.has(key)) return `__${key}__`;
  return key
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}

/** Converts a JSON value for CEL: integers, times and durations by the schema, unknown fields left out. */
export function celValue(value: unknown, schema: Schema): unknown {
  if (typeof value === 'string') return celString(value, schema);
  if (isRawNumber(value)) return schema.type === 'number' ? Number(value.rawJSON) : BigInt(value.rawJSON);
  if (typeof value === 'number') {
    const whole = schema.type === 'integer' || (schema.type === undefined && Number.isInteger(value));
    return whole ? BigInt(value) : value;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.map((item) => celValue(item, items)) : value;
  }
  if (!isObject(value)) return value;
  const result: Json = {};
  for (const key of Object.keys(value)) {
    const child = fieldSchema(schema, key);
    // A null counts as an absent field.
    if (!child || value[key] === null) continue;
    const isField = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
    result[isField ? celName(key) : key] = celValue(value[key], child);
  }
  return result;
}

/** Converts a JSON value without a schema, as admission policies see it: whole numbers are integers, nulls stay. */
export function celUntyped(value: unknown): unknown {
  if (isRawNumber(value)) return isInt64(value.rawJSON) ? BigInt(value.rawJSON) : Number(value.rawJSON);
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celUntyped);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, celUntyped(child)]));
}

/** Converts the whole object; of metadata, rules see name and generateName only. */
export function celRoot(value: Json, schema: Schema): Json {
  const metadata = isObject(value.metadata) ? value.metadata : {};
  const visible: Json = {};
  for (const key of ['name', 'generateName']) if (metadata[key] !== undefined) visible[key] = metadata[key];
  return {
    ...(celValue(value, schema) as Json),
    apiVersion: value.apiVersion,
    kind: value.kind,
    metadata: visible,
  };
}

function celString(value: string, schema: Schema): unknown {
  switch (schema.format) {
    case 'date-time':
    case 'date':
      return new Date(value);
    case 'duration': {
      const ms = parseDuration(value);
      return ms === undefined ? value : evaluate(`duration("${ms / 1000}s")`);
    }
    case 'byte':
      return new Uint8Array(Buffer.from(value, 'base64'));
    default:
      return value;
  }
}
