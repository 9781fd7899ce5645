/** Prints what the clients have from the API's own sources: types of the OpenAPI document's schemas, and a class for each code of a problem. */

type Json = Record<string, unknown>;

/** Schemas of the document by their names, as it lists them. */
function schemasOf(document: Json): [string, Json][] {
  return Object.entries((document.components as { schemas: Record<string, Json> }).schemas);
}

/** Prints an exported TypeScript type for each named schema of the document. */
export function typescriptTypes(document: Json): string {
  return schemasOf(document)
    .map(([name, schema]) => `${comment(schema, '')}export type ${name} = ${typescriptType(schema, '')};\n`)
    .join('\n');
}

function typescriptType(schema: Json, indent: string): string {
  const { $ref, type, items, properties, additionalProperties } = schema;
  if (typeof $ref === 'string') return $ref.slice($ref.lastIndexOf('/') + 1);
  if ('const' in schema) return JSON.stringify(schema.const);
  // Text that holds JSON has the type of its value: the clients parse it.
  if (schema.contentSchema) return typescriptType(schema.contentSchema as Json, indent);
  const either = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(either)) return either.map((one) => typescriptType(one, indent)).join(' | ');
  const known = knownValues(schema);
  if (known)
    return [...known.values.map((value) => JSON.stringify(value)), ...(known.mayGrow ? [ANY_TEXT] : [])].join(' | ');
  if (Array.isArray(type)) return type.map((one) => typescriptType({ ...schema, type: one }, indent)).join(' | ');
  if (type === 'array') return listOf(typescriptType((items ?? {}) as Json, indent));
  if (type === 'object' && properties) return objectType(schema, indent);
  if (type === 'object' && typeof additionalProperties === 'object' && additionalProperties) {
    return `{ [key: string]: ${typescriptType(additionalProperties as Json, indent)} }`;
  }
  return SIMPLE[String(type)] ?? 'unknown';
}

/** Keeps the known values of an enum that may grow in what an editor offers. */
const ANY_TEXT = '(string & {})';
const SIMPLE: Record<string, string> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
  object: '{ [key: string]: unknown }',
};

/** Also a tuple that is `as const` can be given. */
const listOf = (item: string) => `readonly ${/[ |{]/.test(item) ? `(${item})` : item}[]`;

function objectType({ properties, required }: Json, indent: string): string {
  const inner = `${indent}  `;
  const needed = new Set(required as string[] | undefined);
  const fields = Object.entries(properties as Record<string, Json>).map(([name, field]) => {
    const type = typescriptType(field, inner);
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    const optional = type === 'unknown' ? type : `${type} | undefined`;
    const shown = needed.has(name) ? `${key}: ${type};` : `${key}?: ${optional};`;
    return `${comment(field, inner)}${inner}${shown}\n`;
  });
  return fields.length === 0 ? '{ [key: string]: never }' : `{\n${fields.join('')}${indent}}`;
}

/** The values of an enum; `mayGrow` where the document says that later releases may add some. */
function knownValues(schema: Json): { values: unknown[]; mayGrow: boolean } | undefined {
  const extensible = schema['x-extensible-enum'];
  const values = Array.isArray(extensible) ? extensible : schema.enum;
  return Array.isArray(values) ? { values, mayGrow: Boolean(extensible) } : undefined;
}

function comment({ description }: Json, indent: string): string {
  if (typeof description !== 'string') return '';
  return `${indent}/** ${description.replaceAll('*/', '*\\/')} */\n`;
}

/** Prints an error class for each code of the catalogue, and the classes by code. */
export function typescriptProblems(problems: Readonly<Record<string, readonly [number, string]>>): string {
  const classes = Object.entries(problems).map(
    ([code, [status, title]]) => `/** ${status}: ${title} */\nexport class ${code} extends ProblemError {}\n`,
  );
  const codes = Object.keys(problems).map((code) => `  ${code},\n`);
  return [
    "import { ProblemError } from '../errors.ts';\n",
    ...classes,
    `/** Classes by the \`code\` of the answer. */\nexport const PROBLEMS = {\n${codes.join('')}} as const;\n`,
  ].join('\n');
}
