/** JSON Schemas of the document, made of the schemas that the server checks with. */
import * as z from 'zod';
import { turnErrorCodes } from '../../core/resources/reasons.ts';
import { turnStatus } from '../../core/resources/turn.ts';
import { inputs, outputs } from './names.ts';
import { flagText, portText } from './schemas.ts';

export type Json = Record<string, unknown>;

/** Enums of answers that never get another value. */
const CLOSED: ReadonlySet<z.core.$ZodType> = new Set([turnStatus.shape.conditions.unwrap().element.shape.status]);

/** Known values of texts of answers. */
const KNOWN: ReadonlyMap<z.core.$ZodType, readonly string[]> = new Map([
  [turnStatus.shape.error.unwrap().shape.code, turnErrorCodes],
]);

/** Schemas of values that are texts in a URL. */
const IN_URLS: ReadonlyMap<z.core.$ZodType, Json> = new Map<z.core.$ZodType, Json>([
  [flagText, { type: 'boolean' }],
  [portText, { type: 'integer', minimum: 1, maximum: 65_535 }],
]);

export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** Returns the schemas that have a name, by name. */
export function namedSchemas(): Json {
  return { ...registered(inputs, 'input'), ...registered(outputs, 'output') };
}

/** Returns the schema of a body. */
export function schemaOf(schema: z.ZodType): Json {
  if (schema instanceof z.ZodPrefault) return schemaOf(schema.unwrap() as z.ZodType);
  const name = (inputs.get(schema) ?? outputs.get(schema))?.id;
  return name ? ref(name) : inline(schema);
}

/** Returns the schema of a parameter or a header. */
export function inline(schema: z.ZodType): Json {
  const { $schema, ...rest } = z.toJSONSchema(schema, options('input'));
  return rest;
}

function registered(registry: typeof inputs, io: 'input' | 'output'): Json {
  const uri = (id: string) => `#/components/schemas/${id}`;
  const { schemas } = z.toJSONSchema(registry, { ...options(io), uri });
  return Object.fromEntries(Object.entries(schemas).map(([name, { $id, $schema, ...schema }]) => [name, schema]));
}

function options(io: 'input' | 'output') {
  return {
    target: 'draft-2020-12',
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: Json }) => {
      // Extensions are for the Kubernetes API server, which checks them itself.
      for (const key of Object.keys(jsonSchema)) {
        if (key.startsWith('x-kubernetes-') || key === 'nullable') delete jsonSchema[key];
      }
      // Generated clients send a default, or ask for the field; the description says what holds without the field.
      delete jsonSchema.default;
      // The bounds that every integer of zod has are those of JavaScript.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      const shown = IN_URLS.get(zodSchema);
      if (shown) {
        for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
        Object.assign(jsonSchema, shown);
      }
      // Only in JavaScript \0 alone is NUL.
      if (typeof jsonSchema.pattern === 'string') jsonSchema.pattern = jsonSchema.pattern.replaceAll('\\0', '\\x00');
      if (io === 'input') return;
      const known = KNOWN.get(zodSchema);
      if (known) jsonSchema['x-extensible-enum'] = known;
      // A later version may have more fields and more values of an enum.
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      if (jsonSchema.enum !== undefined && !CLOSED.has(zodSchema)) {
        jsonSchema['x-extensible-enum'] = jsonSchema.enum;
        delete jsonSchema.enum;
      }
    },
  } as const;
}
