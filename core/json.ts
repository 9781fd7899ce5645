/**
 * JSON without rounding. JavaScript computes with doubles, which cannot hold every number of a JSON text. Such a number
 * is kept as a RawNumber, an object that `JSON.stringify` writes with the digits that were read.
 */
import { randomUUID } from 'node:crypto';

/**
 * Number of a JSON text as it was written: a frozen object without a prototype. Two of the same text are deeply equal.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
}

/** TypeScript does not declare these two yet. */
const { rawJSON, isRawJSON } = JSON as unknown as RawJson;

export { isRawJSON as isRawNumber, rawJSON as rawNumber };

/** Matches where a number may begin that a double cannot hold: one of 16 digits, or with an exponent of three. */
const LONG = /(?:^|[[:,\s])-?(?:\d[\d.]{15}|\d[\d.]*[eE][-+]?\d{3})/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/;
/** Random prefix of no string in any JSON text, because no author of a text knows it. */
const MARK = randomUUID();

const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;

/**
 * Returns the value of a JSON text. `keep` makes the replacement of a number that a double cannot hold; default: a
 * RawNumber. Throws a SyntaxError as `JSON.parse` does, and the errors of `keep`. Nothing is recursive, so the depth
 * is limited by `JSON.parse` alone.
 */
export function parseExact(text: string, keep: (number: string) => unknown = rawJSON): unknown {
  const value: unknown = JSON.parse(text);
  const marked = LONG.test(text) ? markNumbers(text) : undefined;
  return marked === undefined ? value : unmark(JSON.parse(marked), keep);
}

/** True if a double has exactly the value of this JSON number: `1.0` and `1e2` are held, as 1 and 100. */
export function isDouble(number: string): boolean {
  const value = Number(number);
  return Number.isFinite(value) && decimal(String(value)) === decimal(number);
}

/** True for a signed integer of 64 bits. */
export function isInt64(number: string): boolean {
  return /^-?\d{1,19}$/.test(number) && BigInt.asIntN(64, BigInt(number)) === BigInt(number);
}

export interface LostNumber {
  /** Path of the value, like `spec.input.list[0]`; empty for the value itself. */
  path: string;
  number: string;
}

/**
 * Returns the first number in the value that an API server would round. In custom resources it reads integers as int64
 * and all other numbers, larger integers too, as doubles.
 */
export function lostNumber(value: unknown, path = ''): LostNumber | undefined {
  const waiting = [{ value, path }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, path } = next;
    if (isRawJSON(value)) {
      if (!isInt64(value.rawJSON)) return { path, number: value.rawJSON };
    } else if (typeof value === 'object' && value !== null) {
      const isList = Array.isArray(value);
      for (const [key, child] of Object.entries(value).reverse()) {
        if (typeof child !== 'object' || child === null) continue;
        waiting.push({ value: child, path: isList ? `${path}[${key}]` : fieldPath(path, key) });
      }
    }
  }
  return undefined;
}

/** Returns the value with strings in place of the numbers that an API server would round. */
export function withLostAsText(value: unknown): unknown {
  if (lostNumber(value) === undefined) return value;
  return parseExact(JSON.stringify(value), (number) => (isInt64(number) ? rawJSON(number) : number));
}

/**
 * Returns the value of a JSON text as an API server reads it in a custom resource: integers of 64 bits exactly, any
 * other number as a double. Throws a RangeError for a number that is out of range for both.
 */
export function parseAsApiServer(text: string): unknown {
  return parseExact(text, (number) => {
    if (isInt64(number)) return rawJSON(number);
    const value = Number(number);
    if (Number.isFinite(value)) return value;
    throw new RangeError(`json: cannot unmarshal number ${number} into Go value of type float64`);
  });
}

/**
 * Returns a copy with JavaScript numbers, rounded where necessary: for code that computes, or that takes a RawNumber
 * for an object.
 */
export function asDoubles(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Returns the same text for equal values with any order of their keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item) && !isRawJSON(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

/** Returns the path of a field of the object at `path`. */
export function fieldPath(path: string, key: string): string {
  if (!/^[\w-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

/**
 * Returns the valid text with strings in place of the numbers that a double cannot hold; undefined when there are none.
 */
function markNumbers(text: string): string | undefined {
  const pieces: string[] = [];
  let copied = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      NUMBER.lastIndex = at;
      const [number = ''] = NUMBER.exec(text) ?? [];
      if (!isDouble(number)) {
        pieces.push(text.slice(copied, at), `"${MARK}${number}"`);
        copied = at + number.length;
      }
      at += number.length;
    } else at++;
  }
  if (copied === 0) return undefined;
  return pieces.join('') + text.slice(copied);
}

/** Returns the index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let from = start + 1; ; ) {
    const quote = text.indexOf('"', from);
    let escapes = quote;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((quote - escapes) % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

function unmark(value: unknown, keep: (number: string) => unknown): unknown {
  const root = { value };
  const waiting: object[] = [root];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const holder = next as Record<string, unknown>;
    for (const [key, child] of Object.entries(holder)) {
      if (typeof child === 'object' && child !== null) waiting.push(child);
      else if (typeof child === 'string' && child.startsWith(MARK)) holder[key] = keep(child.slice(MARK.length));
    }
  }
  return root.value;
}

/** Normalizes a number to sign, digits without zeros around them, and exponent: equal numbers give the same text. */
function decimal(number: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = PARTS.exec(number) ?? [];
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === '0') start++;
  let end = digits.length;
  while (end > start && digits[end - 1] === '0') end--;
  if (start === end) return '0';
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

/** Reports whether a parsed value is an object: no array, no null and no number that is kept as text. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJSON(value);
