/**
 * JSON without rounding. A double cannot hold every number of a JSON text. An integer beyond ±(2^53 − 1) is read as a `bigint`, any other number that
 * a double cannot hold as the text that was written. Both directions work in each JavaScript engine, also without `JSON.rawJSON`.
 */
import { randomUUID } from 'node:crypto';
import { ConfigurationError } from './errors.ts';

/** Matches where a number may begin that a double cannot hold: one of 16 digits, or with an exponent of three. */
const LONG = /(?:^|[[:,\s])-?(?:\d[\d.]{15}|\d[\d.]*[eE][-+]?\d{3})/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const SCALAR = /[^\s,}\]]+/y;
const PARTS = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/;
/** Random prefix of no string in any JSON text, because no author of a text knows it. */
const MARK = randomUUID();

/** Returns the value of a JSON text. Throws a SyntaxError as `JSON.parse` does. Nothing is recursive but `JSON.parse` itself. */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const marked = LONG.test(text) ? markNumbers(text) : text;
  return marked === text ? value : unmark(JSON.parse(marked));
}

/** Returns the JSON text of a value, with all digits of each `bigint`. Throws a ConfigurationError for NaN and infinite numbers, which JSON has not. */
export function stringifyExact(value: unknown): string {
  let hasBig = false;
  const text = JSON.stringify(value, (key, item: unknown) => {
    if (typeof item === 'number' && !Number.isFinite(item)) {
      throw new ConfigurationError(
        `${key === '' ? 'the value' : JSON.stringify(key)} is ${item}, which JSON has no number for; send a string or null`,
      );
    }
    if (typeof item !== 'bigint') return item;
    hasBig = true;
    return MARK + item;
  });
  return hasBig ? text.replaceAll(new RegExp(`"${MARK}(-?\\d+)"`, 'g'), '$1') : text;
}

/** Returns the text of a member of the object that a valid JSON text is, by the keys that lead to it; undefined where it has none. */
export function memberText(text: string, ...path: readonly string[]): string | undefined {
  let found: string | undefined = text;
  for (const key of path) found = found === undefined ? undefined : oneMember(found, key);
  return found;
}

function oneMember(text: string, wanted: string): string | undefined {
  let found: string | undefined;
  let at = afterSpace(text, 0);
  if (text[at] !== '{') return undefined;
  for (at = afterSpace(text, at + 1); text[at] === '"'; ) {
    const end = endOfString(text, at);
    const key: unknown = JSON.parse(text.slice(at, end));
    const from = afterSpace(text, afterSpace(text, end) + 1);
    const to = endOfValue(text, from);
    // Of several members with one key the last counts, as for JSON.parse.
    if (key === wanted) found = text.slice(from, to);
    at = afterSpace(text, afterSpace(text, to) + 1);
  }
  return found;
}

/** Returns the index after the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  if (!'"{['.includes(text[start] as string)) {
    SCALAR.lastIndex = start;
    return start + (SCALAR.exec(text)?.[0].length ?? 0);
  }
  let at = start;
  let depth = 0;
  do {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else {
      if (char === '{' || char === '[') depth++;
      else if (char === '}' || char === ']') depth--;
      at++;
    }
  } while (depth > 0);
  return at;
}

const isSpace = (char: string | undefined) => char === ' ' || char === '\n' || char === '\t' || char === '\r';

function afterSpace(text: string, start: number): number {
  let at = start;
  while (isSpace(text[at])) at++;
  return at;
}

/** Returns the index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let from = start + 1; ; ) {
    const quote = text.indexOf('"', from);
    let escapes = quote;
    while (text[escapes - 1] === '\\') escapes--;
    if ((quote - escapes) % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** Returns the valid text with strings in place of the numbers that are read as anything but a double. */
function markNumbers(text: string): string {
  const pieces: string[] = [];
  let copied = 0;
  for (let at = 0; at < text.length; ) {
    const char = text[at] as string;
    if (char === '"') at = endOfString(text, at);
    else if (char === '-' || (char >= '0' && char <= '9')) {
      NUMBER.lastIndex = at;
      const [number = char] = NUMBER.exec(text) ?? [];
      if (!isDouble(number)) {
        pieces.push(text.slice(copied, at), `"${MARK}${number}"`);
        copied = at + number.length;
      }
      at += number.length;
    } else at++;
  }
  return pieces.join('') + text.slice(copied);
}

function unmark(value: unknown): unknown {
  const root = { value };
  const waiting: object[] = [root];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const holder = next as Record<string, unknown>;
    for (const [key, child] of Object.entries(holder)) {
      if (typeof child === 'object' && child !== null) waiting.push(child);
      else if (typeof child === 'string' && child.startsWith(MARK)) {
        // An assignment to `__proto__` would be lost.
        const value = held(child.slice(MARK.length));
        Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
      }
    }
  }
  return root.value;
}

const held = (number: string) => (isInteger(number) ? BigInt(number) : number);
const isInteger = (number: string) => /^-?\d+$/.test(number);

/** Reports whether a double has exactly the value of this JSON number; of integers also, whether it is a safe one. */
function isDouble(number: string): boolean {
  const value = Number(number);
  if (isInteger(number)) return Number.isSafeInteger(value);
  return Number.isFinite(value) && decimal(String(value)) === decimal(number);
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
