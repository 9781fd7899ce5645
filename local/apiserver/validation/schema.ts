import type { Json } from '../object.ts';

export interface CelRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  fieldPath?: string;
  reason?: 'FieldValueRequired' | 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueDuplicate';
  optionalOldSelf?: boolean;
}

/** A structural schema, of a CustomResourceDefinition or, here, of a built-in kind. */
export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  description?: string;
  format?: string;
  nullable?: boolean;
  default?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-map-type'?: 'atomic' | 'granular';
  'x-kubernetes-validations'?: CelRule[];
}

/** Returns the schema of the values of a map; undefined for other schemas. */
const valuesOf = (schema: Schema): Schema | undefined =>
  typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;

/**
 * Returns the schema of one field of an object, whether property or map value. Properties named like methods of Object
 * are safe.
 */
export const fieldSchema = (schema: Schema, key: string): Schema | undefined =>
  schema.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : valuesOf(schema);

/** Returns the identity of a list item: the values of its keys, with defaults. */
export function listMapKey(item: unknown, schema: Schema): string {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const object = (item ?? {}) as Json;
  return JSON.stringify(keys.map((key) => object[key] ?? schema.items?.properties?.[key]?.default ?? null));
}
