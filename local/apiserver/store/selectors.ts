import { badRequest } from '../errors.ts';
import type { ApiObject } from '../object.ts';

export type Selector = (object: ApiObject) => boolean;

const everything: Selector = () => true;
const labelKey = /^([a-z0-9A-Z.-]{1,253}\/)?[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$/;
const labelValue = /^([a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?)?$/;
const setRequirement = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/;
const equality = /^([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)$/;
const comparison = /^(\S+?)\s*([<>])\s*(-?\d+)$/;
const existence = /^(!)?\s*([^=!\s]+)$/;

/** Parses a label selector (`a=b,c!=d,e in (f,g),h,!i,j>1`); throws 400 for other text. */
export function labelSelector(text: string | null): Selector {
  if (!text?.trim()) return everything;
  const requirements = splitOutsideParentheses(text).map((part) => labelRequirement(part.trim(), text));
  return (object) => {
    const labels = object.metadata.labels ?? {};
    return requirements.every((matches) => matches(labels));
  };
}

/** Splits at commas between requirements, but not within parentheses, where commas separate values. */
const splitOutsideParentheses = (text: string) => text.split(/,(?![^(]*\))/);

type Labels = Record<string, string>;

function labelRequirement(part: string, whole: string): (labels: Labels) => boolean {
  const value = (labels: Labels, key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  const set = setRequirement.exec(part);
  if (set) {
    const [, key, operator, list] = set as unknown as [string, string, string, string];
    const values = list.split(',').map((v) => v.trim());
    check(key, values, whole);
    return (labels) => {
      const actual = value(labels, key);
      const contained = actual !== undefined && values.includes(actual);
      return operator === 'in' ? contained : !contained;
    };
  }
  const compared = comparison.exec(part);
  if (compared) {
    const [, key, operator, bound] = compared as unknown as [string, string, string, string];
    check(key, [], whole);
    return (labels) => {
      const actual = value(labels, key);
      if (actual === undefined || !/^-?\d+$/.test(actual)) return false;
      return operator === '<' ? Number(actual) < Number(bound) : Number(actual) > Number(bound);
    };
  }
  const equals = equality.exec(part);
  if (equals) {
    const [, key, operator, expected] = equals as unknown as [string, string, string, string];
    check(key, [expected], whole);
    return (labels) => (value(labels, key) === expected) === (operator !== '!=');
  }
  const exists = existence.exec(part);
  if (exists) {
    const [, not, key] = exists as unknown as [string, string | undefined, string];
    check(key, [], whole);
    return (labels) => (value(labels, key) !== undefined) === (not === undefined);
  }
  throw badRequest(`unable to parse requirement: found '${part}', expected: identifier in '${whole}'`);
}

function check(key: string, values: string[], whole: string): void {
  const wrong = labelKey.test(key) ? values.find((value) => !labelValue.test(value)) : key;
  if (wrong !== undefined)
    throw badRequest(`unable to parse requirement: invalid ${JSON.stringify(wrong)} in '${whole}'`);
}

export type FieldReader = (object: ApiObject) => string;

/** Parses a field selector (`a=b,c!=d`) over the fields that a kind offers; throws 400 for others. */
export function fieldSelector(text: string | null, fields: Record<string, FieldReader>): Selector {
  if (!text?.trim()) return everything;
  const requirements = text.split(/(?<!\\),/).map((part) => {
    const match = /^(.*?)(!=|==|=)(.*)$/s.exec(part);
    if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
    const [, name, operator, raw] = match as unknown as [string, string, string, string];
    const read = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!read) throw badRequest(`field label not supported: ${name}`);
    const expected = raw.replace(/\\([\\,=])/g, '$1');
    return (object: ApiObject) => (read(object) === expected) === (operator !== '!=');
  });
  return (object) => requirements.every((matches) => matches(object));
}

export const both =
  (a: Selector, b: Selector): Selector =>
  (object) =>
    a(object) && b(object);
