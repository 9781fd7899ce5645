import type { ApiError } from '../../core/kube/errors.ts';
import { failure } from './errors.ts';

/**
 * Field error in the words of Kubernetes' `field.Error`: the path, the kind of error, the value where it helps, and a
 * detail.
 */
export interface FieldError {
  reason:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueTypeInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany'
    | 'FieldValueDuplicate'
    | 'FieldValueNotFound';
  field: string;
  /** Message without the field's name. */
  message: string;
}

const body = (word: string, ...parts: (string | undefined)[]) =>
  [word, ...parts.filter((part) => part !== undefined && part !== '')].join(': ');

/** Marks a value that is not shown in the message. */
export const omitted = Symbol('omitted');

const shown = (value: unknown) => (value === omitted ? undefined : JSON.stringify(value === undefined ? '' : value));

export const required = (field: string, detail?: string): FieldError => ({
  reason: 'FieldValueRequired',
  field,
  message: body('Required value', detail),
});

export const invalid = (field: string, value: unknown, detail: string): FieldError => ({
  reason: 'FieldValueInvalid',
  field,
  message: body('Invalid value', shown(value), detail),
});

export const typeInvalid = (field: string, value: unknown, detail: string): FieldError => ({
  reason: 'FieldValueTypeInvalid',
  field,
  message: body('Invalid value', shown(value), detail),
});

export const notSupported = (field: string, value: unknown, values: unknown[]): FieldError => ({
  reason: 'FieldValueNotSupported',
  field,
  message: body(
    'Unsupported value',
    shown(value),
    values.length > 0
      ? `supported values: ${values
          .map((v) => JSON.stringify(typeof v === 'string' ? v : JSON.stringify(v)))
          .join(', ')}`
      : undefined,
  ),
});

export const forbiddenField = (field: string, detail: string): FieldError => ({
  reason: 'FieldValueForbidden',
  field,
  message: body('Forbidden', detail),
});

export const tooLong = (field: string, max: number): FieldError => ({
  reason: 'FieldValueTooLong',
  field,
  message: body('Too long', `may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`),
});

export const tooMany = (field: string, count: number, max: number): FieldError => ({
  reason: 'FieldValueTooMany',
  field,
  message: body('Too many', String(count), `must have at most ${max} ${max === 1 ? 'item' : 'items'}`),
});

export const duplicate = (field: string, value: unknown): FieldError => ({
  reason: 'FieldValueDuplicate',
  field,
  message: body('Duplicate value', shown(value)),
});

/** Makes a 422 with all errors, in the API server's form; the text contains each error once. */
export function invalidObject(type: { group: string; kind: string }, name: string, errors: FieldError[]): ApiError {
  const texts = [...new Set(errors.map((error) => `${error.field || '<nil>'}: ${error.message}`))];
  const kind = type.group === '' ? type.kind : `${type.kind}.${type.group}`;
  return failure(
    422,
    'Invalid',
    `${kind} ${JSON.stringify(name)} is invalid: ${texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`}`,
    {
      name,
      group: type.group,
      kind: type.kind,
      causes: errors.map((error) => ({ reason: error.reason, message: error.message, field: error.field || '<nil>' })),
    },
  );
}
