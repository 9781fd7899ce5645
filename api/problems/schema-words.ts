import type * as z from 'zod';

type Issue = z.core.$ZodIssue;

/** Messages that zod itself writes, in JavaScript's words. Messages of the schemas are other texts. */
const ZODS_OWN = /^(Invalid input|Invalid option|Too small|Too big|Invalid ISO)/;

/** Returns what is wrong with a value, in the words of JSON; `place`: what the value is a part of. */
export function inWords(issue: Issue, place: 'Body' | 'Parameter'): string {
  if (!ZODS_OWN.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue, place);
    case 'invalid_value':
      return `it must be ${oneOf(issue.values)}`;
    case 'too_small':
      return tooSmall(issue);
    case 'too_big':
      return `it must ${UNITS[issue.origin] ? 'have' : 'be'} at most ${amount(issue, issue.maximum)}`;
    case 'invalid_format':
      return issue.format === 'datetime' ? 'it must be a time, for example 2026-01-31T12:00:00Z' : issue.message;
    default:
      return issue.message;
  }
}

const TYPES: Record<string, string> = { record: 'object', int: 'whole number', nan: 'number' };

function wrongType({ message, expected }: Issue & { code: 'invalid_type' }, place: 'Body' | 'Parameter'): string {
  const [, received = ''] = /, received (\S+)$/.exec(message) ?? [];
  if (received === 'undefined') return 'it is missing';
  if (received === 'NaN') return 'it must be a number, given once';
  if (received === 'array' && place === 'Parameter') return 'it is given more than once; give it once';
  const type = TYPES[expected] ?? expected;
  return expected === 'int' ? `it must be a ${type}` : `it must be of type ${type}, not ${received}`;
}

const UNITS: Record<string, readonly [one: string, many: string]> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  object: ['field', 'fields'],
  record: ['field', 'fields'],
};

function tooSmall(issue: Issue & { code: 'too_small' }): string {
  if (!UNITS[issue.origin]) return `it must be at least ${issue.minimum}`;
  return issue.minimum === 1 ? 'it must not be empty' : `it must have at least ${amount(issue, issue.minimum)}`;
}

function amount({ origin }: { origin: string }, limit: number | bigint): string {
  const units = UNITS[origin];
  return units ? `${limit} ${units[limit === 1 ? 0 : 1]}` : `${limit}`;
}

/** `"A", "B" or "C"` */
function oneOf(values: readonly z.core.util.Primitive[]): string {
  const words = values.map((value) => (typeof value === 'string' ? JSON.stringify(value) : String(value)));
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
