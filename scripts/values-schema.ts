import { customResourceDefinition, kinds } from '../core/resources/crd.ts';

type JsonSchema = { [key: string]: unknown };

/** Beginning of the generated part of charts/berth/values.schema.json, which is its end. */
const BEGIN = '\n  "definitions": {\n';

/** Keywords of a CRD's schema that check nothing here. */
const LEFT_OUT = new Set(['default', 'description', 'format', 'nullable']);

/** Returns the JSON Schema of a structural schema: unknown fields are refused; CEL rules cannot be told. */
function jsonSchema(structural: JsonSchema): JsonSchema {
  const out: JsonSchema = {};
  for (const [key, value] of Object.entries(structural)) {
    if (key === 'x-kubernetes-list-type' && value === 'set') out.uniqueItems = true;
    if (LEFT_OUT.has(key) || key.startsWith('x-kubernetes-')) continue;
    if (key === 'properties') {
      const fields = Object.entries(value as Record<string, JsonSchema>);
      out.properties = Object.fromEntries(fields.map(([name, field]) => [name, jsonSchema(field)]));
      out.additionalProperties = false;
    } else if (key === 'items' || key === 'additionalProperties') out[key] = jsonSchema(value as JsonSchema);
    else out[key] = value;
  }
  return out;
}

interface CustomResourceDefinition {
  spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: JsonSchema } } } }] };
}

/**
 * Returns the schema of the chart's values, `present`, with its definitions made anew: the spec of a SessionClass, to which the
 * values of classes refer. What stands before the definitions is written by hand and stays as it is.
 */
export function valuesSchema(present: string, notice: string): string {
  const sessionClass = kinds.find(({ kind }) => kind === 'SessionClass') as (typeof kinds)[number];
  const [version] = (customResourceDefinition(sessionClass) as unknown as CustomResourceDefinition).spec.versions;
  const spec = jsonSchema(version.schema.openAPIV3Schema.properties.spec);
  const definitions = { sessionClassSpec: { $comment: notice, ...spec } };
  const end = present.indexOf(BEGIN);
  if (end < 0) throw new Error('charts/berth/values.schema.json does not end with "definitions"');
  return `${present.slice(0, end)}${JSON.stringify({ definitions }, null, 2).slice('{'.length)}\n`;
}
