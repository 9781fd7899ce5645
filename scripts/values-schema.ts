import { customResourceDefinition, kinds } from '../core/resources/crd.ts';
import { DURATION_PATTERN } from '../core/resources/duration.ts';
import { quantity } from '../core/resources/schema.ts';

type JsonSchema = { [key: string]: unknown };

/** Beginning of the generated part of charts/berth/values.schema.json, which is its end. */
const BEGIN = '\n  "definitions": {\n';

/** Keywords of a CRD's schema that check nothing here. */
const LEFT_OUT = new Set(['default', 'description', 'format', 'nullable']);

/** Patterns that templates/checks tells in sentences, by the name of their form there. */
const FORMS = new Map([
  [DURATION_PATTERN, 'duration'],
  [
    quantity()
      .def.checks?.map((check) => (check._zod.def as { pattern?: RegExp }).pattern?.source)
      .find(Boolean),
    'quantity',
  ],
]);

/**
 * Returns the JSON Schema of a structural schema: unknown fields are refused; CEL rules cannot be told. `forms` gets the fields whose
 * pattern is left out, by their path; fields of lists and maps have none.
 */
function jsonSchema(structural: JsonSchema, forms: Record<string, string>, path?: string): JsonSchema {
  const out: JsonSchema = {};
  const below = (name: string) => (path === undefined ? undefined : `${path}${path && '.'}${name}`);
  for (const [key, value] of Object.entries(structural)) {
    if (key === 'x-kubernetes-list-type' && value === 'set') out.uniqueItems = true;
    if (LEFT_OUT.has(key) || key.startsWith('x-kubernetes-')) continue;
    const form = key === 'pattern' && path !== undefined ? FORMS.get(value as string) : undefined;
    if (form) {
      forms[path as string] = form;
      out.minLength = 1;
    } else if (key === 'properties') {
      const fields = Object.entries(value as Record<string, JsonSchema>);
      out.properties = Object.fromEntries(fields.map(([name, field]) => [name, jsonSchema(field, forms, below(name))]));
      out.additionalProperties = false;
    } else if (key === 'items' || key === 'additionalProperties') out[key] = jsonSchema(value as JsonSchema, forms);
    else out[key] = value;
  }
  return out;
}

interface CustomResourceDefinition {
  spec: { versions: [{ schema: { openAPIV3Schema: { properties: { spec: JsonSchema } } } }] };
}

/** The schema of a SessionClass's spec, and the forms of its durations and quantities by their path. */
function sessionClassSpec(): { schema: JsonSchema; forms: Record<string, string> } {
  const sessionClass = kinds.find(({ kind }) => kind === 'SessionClass') as (typeof kinds)[number];
  const [version] = (customResourceDefinition(sessionClass) as unknown as CustomResourceDefinition).spec.versions;
  const forms: Record<string, string> = {};
  return { schema: jsonSchema(version.schema.openAPIV3Schema.properties.spec, forms, ''), forms };
}

/** Returns the template with the forms of the texts in the spec of a class, as JSON, for templates/checks. */
export function classForms(notice: string): string {
  const forms = JSON.stringify(sessionClassSpec().forms, null, 2);
  return `{{- /* ${notice} */ -}}\n{{- define "berth.classForms" -}}\n${forms}\n{{- end }}\n`;
}

/**
 * Returns the schema of the chart's values, `present`, with its definitions made anew: the spec of a SessionClass, to which the
 * values of classes refer. What stands before the definitions is written by hand and stays as it is.
 */
export function valuesSchema(present: string, notice: string): string {
  const definitions = { sessionClassSpec: { $comment: notice, ...sessionClassSpec().schema } };
  const end = present.indexOf(BEGIN);
  if (end < 0) throw new Error('charts/berth/values.schema.json does not end with "definitions"');
  return `${present.slice(0, end)}${JSON.stringify({ definitions }, null, 2).slice('{'.length)}\n`;
}
