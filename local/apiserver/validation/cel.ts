import { type Environment, Optional, type ParseResult } from '@marcbachmann/cel-js';
import { duplicate, type FieldError, forbiddenField, invalid, omitted, required } from '../fields.ts';
import { equal, isObject, type Json } from '../object.ts';
import { kubernetesCel } from './cel-library.ts';
import { celRoot, celValue } from './cel-values.ts';
import { type CelRule, fieldSchema, type Schema } from './schema.ts';
import { oldItems } from './values.ts';

const environment: Environment = kubernetesCel().registerVariable('self', 'dyn').registerVariable('oldSelf', 'dyn');

interface Compiled {
  rule: CelRule;
  usesOldSelf: boolean;
  run: ParseResult;
  message: ParseResult | undefined;
}

const compiled = new WeakMap<CelRule, Compiled>();

function compile(rule: CelRule): Compiled {
  let result = compiled.get(rule);
  if (!result) {
    const code = rule.rule.replaceAll(/"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/g, '');
    result = {
      rule,
      usesOldSelf: /\boldSelf\b/.test(code),
      run: environment.parse(rule.rule),
      message: rule.messageExpression ? environment.parse(rule.messageExpression) : undefined,
    };
    compiled.set(rule, result);
  }
  return result;
}

/** Returns the errors in the rules of a schema: a text for each, under the path of the rule within the CRD. */
export function celRuleErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  schema['x-kubernetes-validations']?.forEach((rule, i) => {
    const at = `${path}.x-kubernetes-validations[${i}]`;
    const check = (field: 'rule' | 'messageExpression', wanted: string) => {
      const expression = rule[field];
      if (expression === undefined) return;
      const result = environment.check(expression);
      if (!result.valid) {
        errors.push(invalid(`${at}.${field}`, expression, `compilation failed: ERROR: ${result.error?.message}`));
      } else if (result.type !== wanted && result.type !== 'dyn') {
        errors.push(invalid(`${at}.${field}`, expression, `must evaluate to a ${wanted}`));
      }
    };
    if (!rule.rule) errors.push(required(`${at}.rule`, 'rule is not specified'));
    else check('rule', 'bool');
    check('messageExpression', 'string');
  });
  const below = (child: Schema | undefined, name: string) => {
    if (child) errors.push(...celRuleErrors(child, `${path}.${name}`));
  };
  for (const [key, child] of Object.entries(schema.properties ?? {})) below(child, `properties[${key}]`);
  below(schema.items, 'items');
  if (typeof schema.additionalProperties === 'object') below(schema.additionalProperties, 'additionalProperties');
  return errors;
}

/** Evaluates the rules of a schema on an object and, where it has one, its stored predecessor. */
export function celErrors(object: Json, schema: Schema, old: Json | undefined): FieldError[] {
  return evaluateBelow(object, schema, {
    path: '',
    root: true,
    old,
    unchanged: old !== undefined && equal(object, old),
  });
}

interface Place {
  path: string;
  root: boolean;
  old: unknown;
  /** True if this value, or one that contains it, has not changed: a rule that fails on it failed before. */
  unchanged: boolean;
}

function evaluateBelow(value: unknown, schema: Schema, place: Place): FieldError[] {
  if (value === null || value === undefined) return [];
  const errors = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) => evaluateRule(rule, value, schema, place));
  const below = (child: unknown, childSchema: Schema, path: string, old: unknown) => {
    const unchanged = place.unchanged || (old !== undefined && equal(child, old));
    errors.push(...evaluateBelow(child, childSchema, { path, root: false, old, unchanged }));
  };
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items) {
      const before = oldItems(schema, place.old);
      value.forEach((item, i) => {
        below(item, items, `${place.path}[${i}]`, before(item));
      });
    }
  } else if (isObject(value)) {
    const old = isObject(place.old) ? place.old : {};
    for (const [key, child] of Object.entries(value)) {
      const childSchema = fieldSchema(schema, key);
      if (!childSchema) continue;
      const isField = schema.properties !== undefined && Object.hasOwn(schema.properties, key);
      const path = isField ? (place.path === '' ? key : `${place.path}.${key}`) : `${place.path}[${key}]`;
      below(child, childSchema, path, old[key]);
    }
  }
  return errors;
}

function evaluateRule(rule: CelRule, value: unknown, schema: Schema, place: Place): FieldError[] {
  const { usesOldSelf, run, message } = compile(rule);
  const { old } = place;
  const hasOld = old !== undefined && old !== null;
  if (usesOldSelf && !hasOld && !rule.optionalOldSelf) return [];
  const see = (v: unknown) => (place.root ? celRoot(v as Json, schema) : celValue(v, schema));
  const variables: Json = { self: see(value) };
  if (rule.optionalOldSelf) variables.oldSelf = hasOld ? Optional.of(see(old)) : Optional.none();
  else if (hasOld) variables.oldSelf = see(old);
  try {
    if (run(variables) === true) return [];
  } catch (error) {
    return [
      invalid(place.path, schema.type, `${(error as Error).message.split('\n')[0]} evaluating rule: ${named(rule)}`),
    ];
  }
  if (!usesOldSelf && place.unchanged) return [];
  const detail = textOf(message, variables) ?? (rule.message?.trim() || `failed rule: ${rule.rule.trim()}`);
  const field = rule.fieldPath ? `${place.path}${rule.fieldPath}`.replace(/^\./, '') : place.path;
  const shown = schema.type === 'object' || schema.type === 'array' ? omitted : value;
  switch (rule.reason) {
    case 'FieldValueRequired':
      return [required(field, detail)];
    case 'FieldValueForbidden':
      return [forbiddenField(field, detail)];
    case 'FieldValueDuplicate':
      return [duplicate(field, shown)];
    default:
      return [invalid(field, shown, detail)];
  }
}

/** Returns the text of a messageExpression; undefined where it cannot be used. */
function textOf(expression: ParseResult | undefined, variables: Json): string | undefined {
  if (!expression) return undefined;
  try {
    const text: unknown = expression(variables);
    return typeof text === 'string' && text.trim() !== '' && !text.includes('\n') ? text.trim() : undefined;
  } catch {
    return undefined;
  }
}

const named = (rule: CelRule) => (rule.message?.trim() ? rule.message.trim() : rule.rule.trim());
