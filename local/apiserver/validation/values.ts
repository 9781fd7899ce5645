import { isRawNumber } from '../../../core/json.ts';
import { type FieldError, invalid, notSupported, required, tooLong, tooMany, typeInvalid } from '../fields.ts';
import { equal, isObject, type Json } from '../object.ts';
import { matchesFormat } from './formats.ts';
import { fieldSchema, listMapKey, type Schema } from './schema.ts';

/**
 * Checks a value against a structural schema, in the words of the API server. `old` is the stored value at the same
 * place: unchanged parts are not reported (ratcheting). `path` is the start of the schema (`''` or `status`), `name`
 * the name of the place in messages.
 */
export function validateValue(value: unknown, schema: Schema, path = '', old?: unknown): FieldError[] {
  return new Validator(path).check(value, schema, '', old);
}

type JsonType = NonNullable<Schema['type']> | 'null';

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (isRawNumber(value)) return 'integer';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as 'string' | 'boolean' | 'object';
}

const patterns = new Map<string, RegExp>();

/** Compiles a pattern in Go's syntax, as far as JavaScript shares it. */
function regexp(pattern: string): RegExp {
  let compiled = patterns.get(pattern);
  if (!compiled) {
    compiled = new RegExp(pattern, 'u');
    patterns.set(pattern, compiled);
  }
  return compiled;
}

class Validator {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Returns the path of the field for a name within the schema. */
  #field(name: string): string {
    if (this.#base === '') return name;
    return name === '' ? this.#base : `${this.#base}.${name}`;
  }

  check(value: unknown, schema: Schema, name: string, old: unknown): FieldError[] {
    if (old !== undefined && equal(value, old)) return [];
    const errors = this.#checkType(value, schema, name);
    if (value === null) return errors;
    if (errors.length === 0) {
      errors.push(...this.#checkLogic(value, schema, name));
      if (typeof value === 'string') errors.push(...this.#checkString(value, schema, name));
      if (isRawNumber(value)) errors.push(...this.#checkNumber(Number(value.rawJSON), schema, name));
      if (typeof value === 'number') errors.push(...this.#checkNumber(value, schema, name));
      if (Array.isArray(value)) errors.push(...this.#checkList(value, schema, name, old));
    }
    if (schema.enum && !schema.enum.some((allowed) => equal(allowed, value))) {
      errors.push(notSupported(this.#field(name), value, schema.enum));
    }
    if (isObject(value)) errors.push(...this.#checkObject(value, schema, name, isObject(old) ? old : undefined));
    return errors;
  }

  #checkType(value: unknown, schema: Schema, name: string): FieldError[] {
    const types: string[] = schema['x-kubernetes-int-or-string']
      ? ['integer', 'string']
      : schema.type
        ? [schema.type]
        : [];
    const actual = typeOf(value);
    if (types.length === 0 || types.includes(actual)) return [];
    if (actual === 'integer' && types.includes('number')) return [];
    if (actual === 'null' && schema.nullable) return [];
    return [
      typeInvalid(
        this.#field(name),
        actual,
        `${name} in body must be of type ${types.join(',')}: ${JSON.stringify(actual)}`,
      ),
    ];
  }

  #checkString(value: string, schema: Schema, name: string): FieldError[] {
    const errors: FieldError[] = [];
    const length = [...value].length;
    if (schema.maxLength !== undefined && length > schema.maxLength) {
      errors.push(tooLong(this.#field(name), schema.maxLength));
    }
    if (schema.minLength !== undefined && length < schema.minLength) {
      const text = `${name} in body should be at least ${schema.minLength} chars long`;
      errors.push(invalid(this.#field(name), value, text));
    }
    if (schema.pattern !== undefined && !regexp(schema.pattern).test(value)) {
      errors.push(invalid(this.#field(name), value, `${name} in body should match '${schema.pattern}'`));
    }
    if (schema.format && !matchesFormat(schema.format, value)) {
      const text = `${name} in body must be of type ${schema.format}: ${JSON.stringify(value)}`;
      errors.push(typeInvalid(this.#field(name), value, text));
    }
    return errors;
  }

  #checkNumber(value: number, schema: Schema, name: string): FieldError[] {
    const errors: FieldError[] = [];
    const fail = (text: string) => errors.push(invalid(this.#field(name), value, `${name} in body should be ${text}`));
    const { multipleOf, maximum, minimum } = schema;
    if (multipleOf !== undefined && value % multipleOf !== 0) fail(`a multiple of ${multipleOf}`);
    if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
      fail(schema.exclusiveMaximum ? `less than ${maximum}` : `less than or equal to ${maximum}`);
    }
    if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
      fail(schema.exclusiveMinimum ? `greater than ${minimum}` : `greater than or equal to ${minimum}`);
    }
    if (schema.format === 'int32' && (value > 2147483647 || value < -2147483648)) {
      errors.push(
        invalid(this.#field(name), value, `Checked value must be of type integer with format int32 in ${name}`),
      );
    }
    return errors;
  }

  #checkList(list: unknown[], schema: Schema, name: string, old: unknown): FieldError[] {
    const errors: FieldError[] = [];
    const { items } = schema;
    if (items) {
      const before = oldItems(schema, old);
      list.forEach((item, i) => {
        errors.push(...this.check(item, items, `${name}[${i}]`, before(item)));
      });
    }
    if (schema.minItems !== undefined && list.length < schema.minItems) {
      const text = `${name} in body should have at least ${schema.minItems} items`;
      errors.push(invalid(this.#field(name), list.length, text));
    }
    if (schema.maxItems !== undefined && list.length > schema.maxItems) {
      errors.push(tooMany(this.#field(name), list.length, schema.maxItems));
    }
    return errors;
  }

  #checkObject(object: Json, schema: Schema, name: string, old: Json | undefined): FieldError[] {
    const errors: FieldError[] = [];
    const keys = Object.keys(object);
    if (schema.minProperties !== undefined && keys.length < schema.minProperties) {
      const text = `${name} in body should have at least ${schema.minProperties} properties`;
      errors.push(invalid(this.#field(name), keys.length, text));
    }
    if (schema.maxProperties !== undefined && keys.length > schema.maxProperties) {
      errors.push(tooMany(this.#field(name), keys.length, schema.maxProperties));
    }
    const child = (key: string) => (name === '' ? key : `${name}.${key}`);
    for (const key of keys) {
      const field = fieldSchema(schema, key);
      if (field) errors.push(...this.check(object[key], field, child(key), old?.[key]));
    }
    for (const key of schema.required ?? []) {
      if (!Object.hasOwn(object, key)) errors.push(required(this.#field(child(key))));
    }
    return errors;
  }

  #checkLogic(value: unknown, schema: Schema, name: string): FieldError[] {
    const errors: FieldError[] = [];
    const fails = (other: Schema) => this.check(value, other, name, undefined);
    for (const other of schema.allOf ?? []) errors.push(...fails(other));
    const fail = (text: string) => errors.push(invalid(this.#field(name), '', `${JSON.stringify(name)} ${text}`));
    if (schema.anyOf && !schema.anyOf.some((other) => fails(other).length === 0)) {
      fail('must validate at least one schema (anyOf)');
    }
    if (schema.oneOf) {
      const matching = schema.oneOf.filter((other) => fails(other).length === 0).length;
      if (matching !== 1) {
        fail(
          `must validate one and only one schema (oneOf). Found ${matching === 0 ? 'none valid' : `${matching} valid alternatives`}`,
        );
      }
    }
    if (schema.not && fails(schema.not).length === 0) fail('must not validate the schema (not)');
    return errors;
  }
}

/** Returns the old item of a new one: only the items of a list map have an identity. */
export function oldItems(schema: Schema, old: unknown): (item: unknown) => unknown {
  if (!Array.isArray(old) || schema['x-kubernetes-list-type'] !== 'map') return () => undefined;
  const byKey = new Map(old.map((item) => [listMapKey(item, schema), item]));
  return (item) => byKey.get(listMapKey(item, schema));
}
