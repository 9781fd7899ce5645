import { isRawNumber } from '../json.ts';

/** Checks that the parameters of a tool use the supported part of JSON Schema, before any program is run with them. */

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const ONE = [
  'items',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
];
const SEVERAL = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const NAMED = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'];
const NUMBERS = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
];
const MAX_DEPTH = 32;

type Json = Record<string, unknown>;

/** Returns the problem of a tool's argument schema and its place; undefined when there is none. */
export function toolSchemaProblem(schema: unknown): string | undefined {
  if (!isObject(schema) || schema.type !== 'object') return 'must be a JSON Schema with type: object';
  return problemIn(schema, schema, '', 0);
}

/** Reports whether a tool with this schema has named arguments. */
export function takesArguments(schema: unknown): boolean {
  return isObject(schema) && isObject(schema.properties) && Object.keys(schema.properties).length > 0;
}

function problemIn(schema: unknown, root: Json, at: string, depth: number): string | undefined {
  if (typeof schema === 'boolean') return undefined;
  const here = at || 'the schema';
  if (!isObject(schema)) return `${here} must be a schema: an object, true or false`;
  if (depth > MAX_DEPTH) return `${here} is nested deeper than ${MAX_DEPTH} levels`;
  return own(schema, root, here) ?? below(schema, root, at, depth);
}

function own(schema: Json, root: Json, here: string): string | undefined {
  const { type, enum: values, required, pattern, $ref } = schema;
  const types = Array.isArray(type) ? type : [type];
  if (type !== undefined && !types.every((one) => TYPES.includes(one as string))) {
    return `${here}: type must be of ${TYPES.join(', ')}`;
  }
  if (values !== undefined && !Array.isArray(values)) return `${here}: enum must be a list`;
  if (required !== undefined && !(Array.isArray(required) && required.every((name) => typeof name === 'string'))) {
    return `${here}: required must be a list of names`;
  }
  const number = NUMBERS.find((name) => schema[name] !== undefined && !isNumber(schema[name]));
  if (number) return `${here}: ${number} must be a number`;
  for (const expression of [
    pattern,
    ...Object.keys(isObject(schema.patternProperties) ? schema.patternProperties : {}),
  ]) {
    if (expression !== undefined && !isExpression(expression)) return `${here}: pattern must be a regular expression`;
  }
  if ($ref !== undefined && !(typeof $ref === 'string' && refers($ref, root))) {
    return `${here}: $ref must name a place in this schema, for example #/$defs/item`;
  }
  const elsewhere = ['$id', '$anchor', '$dynamicRef', '$recursiveRef'].find((name) => schema[name] !== undefined);
  return elsewhere ? `${here}: ${elsewhere} is not supported` : undefined;
}

function below(schema: Json, root: Json, at: string, depth: number): string | undefined {
  for (const key of [...ONE, ...SEVERAL, ...NAMED]) {
    const value = schema[key];
    if (value === undefined) continue;
    if (SEVERAL.includes(key) && !Array.isArray(value)) return `${at}/${key} must be a list of schemas`;
    if (NAMED.includes(key) && !isObject(value)) return `${at}/${key} must be an object of schemas`;
    const children = ONE.includes(key)
      ? [['', value] as const]
      : Object.entries(value as object).map(([k, v]) => [`/${k}`, v] as const);
    for (const [name, child] of children) {
      const problem = problemIn(child, root, `${at}/${key}${name}`, depth + 1);
      if (problem) return problem;
    }
  }
  return undefined;
}

function refers($ref: string, root: Json): boolean {
  if (!/^#(\/|$)/.test($ref)) return false;
  let found: unknown = root;
  for (const token of decodeURIComponent($ref.slice(1)).split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return false;
    found = (found as Json)[key];
  }
  return isObject(found) || typeof found === 'boolean';
}

function isExpression(value: unknown): boolean {
  try {
    return typeof value === 'string' && Boolean(new RegExp(value, 'u'));
  } catch {
    return false;
  }
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number' || isRawNumber(value);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
