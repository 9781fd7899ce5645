import { tooDeepAt } from '../depth.ts';
import { isRawNumber, parseExact } from '../json.ts';
import { findJsonProblem } from '../json-problem.ts';
import { prototypeKeyAt } from '../prototype-key.ts';
import { MAX_JSON_DEPTH, MAX_OUTPUT_BYTES } from '../resources/limits.ts';
import type { Hidden, Rules } from '../text/hidden.ts';
import { redact } from '../text/redact.ts';
import { headOf } from '../text/utf8.ts';
import { TurnFailure } from './failure.ts';

/** Limit of the JSON text that is read: whitespace may make it larger than the output. */
export const MAX_RAW_BYTES = 2 * MAX_OUTPUT_BYTES;
export const MAX_METADATA_BYTES = 4096;
/** Maximum nesting including an envelope, or the response of a server, around the output. */
export const ENVELOPE_DEPTH = MAX_JSON_DEPTH + 1;
/** Number of bytes that an error quotes of a text that is not JSON. */
const QUOTED_BYTES = 80;

/**
 * Parses a text as a JSON value with at most `levels` nested arrays and objects. Throws a TurnFailure that says what is
 * wrong with it. `what` names the place of the text; `advice` says what to do if the text is not JSON.
 */
export function parseJson(
  text: string,
  what: string,
  secrets: Hidden,
  { levels = MAX_JSON_DEPTH, advice }: { levels?: number; advice?: string } = {},
): unknown {
  const invalid = (problem: string) => new TurnFailure('InvalidResult', `${what} ${problem}`, advice);
  // JavaScript counts the byte order mark to white space; JSON does not.
  if (/^[ \t\n\r]*$/.test(text)) throw invalid('is empty; it must be JSON');
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    const { line, column, problem } = findJsonProblem(text);
    // V8's own text quotes the input, cut anywhere: half a secret would no longer be recognised.
    const start = JSON.stringify(
      headOf(redact(text.replace(/^[ \t\n\r]+/, '').trimEnd(), secrets.errors), QUOTED_BYTES),
    );
    throw invalid(`is not valid JSON: line ${line}, column ${column}: ${problem}; it begins ${start}`);
  }
  checkDepth(value, what, levels);
  return value;
}

/** Throws a TurnFailure for a value that other programs could not read because of its depth. */
export function checkDepth(value: unknown, what: string, levels = MAX_JSON_DEPTH): void {
  const place = tooDeepAt(value, '', levels);
  if (place !== undefined) {
    throw new TurnFailure('InvalidResult', `${what} is nested deeper than ${levels} levels, at ${place}`);
  }
  if (prototypeKeyAt(value) === undefined) return;
  throw new TurnFailure('InvalidResult', `${what} has the key "__proto__", which API servers may refuse`);
}

/** Matches a text that can be part of a number. */
const IN_NUMBER = /^[-+.0-9e]+$/i;
const numberRules = new WeakMap<Rules, Rules>();

/** Selects the rules that can match a number. They are few, so a number costs little even with many secrets. */
function inNumbers(rules: Rules): Rules {
  let some = numberRules.get(rules);
  if (!some) {
    const texts = rules.texts.filter((text) => IN_NUMBER.test(text));
    some = { texts, wrapped: [], patterns: rules.patterns, heuristics: false };
    numberRules.set(rules, some);
  }
  return some;
}

/**
 * Returns the value with every string redacted, keys included. A number that contains a secret becomes a string.
 * `onHidden` is called for each `[REDACTED]`.
 */
export function redactValue(value: unknown, rules: Rules, onHidden?: () => void): unknown {
  if (typeof value === 'string') return redact(value, rules, onHidden);
  if (typeof value === 'number' || isRawNumber(value)) {
    const some = inNumbers(rules);
    if (some.texts.length + some.patterns.length === 0) return value;
    const text = JSON.stringify(value);
    const shown = redact(text, some, onHidden);
    return shown === text ? value : shown;
  }
  if (Array.isArray(value)) return value.map((item) => redactValue(item, rules, onHidden));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redact(key, rules, onHidden), redactValue(item, rules, onHidden)]),
  );
}

/** Throws a TurnFailure when the output is too large to be stored. */
export function checkOutputSize(output: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(output) ?? '');
  if (bytes > MAX_OUTPUT_BYTES) throw tooLarge(bytes);
}

/** `bytes` is the number counted before reading stopped. */
export function tooLarge(bytes: number): TurnFailure {
  return new TurnFailure('OutputTooLarge', `the output has ${bytes} bytes; at most ${MAX_OUTPUT_BYTES} can be stored`);
}
