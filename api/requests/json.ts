import { tooDeepAt } from '../../core/depth.ts';
import { lostNumber, parseExact } from '../../core/json.ts';
import { describeProblem, findJsonProblem } from '../../core/json-problem.ts';
import { prototypeKeyAt } from '../../core/prototype-key.ts';
import { clip, KiB, MAX_JSON_DEPTH } from '../../core/resources/limits.ts';
import { LONE_SURROGATE, loneSurrogateAt } from '../../core/text/lone-surrogate.ts';
import { Problem } from '../problems/problems.ts';

/** Maximum nesting of a body: room around an input or a response, whose own depth is checked with the field's name. */
const MAX_DEPTH = MAX_JSON_DEPTH + 8;

/** Parses a JSON text; undefined for an empty one. Throws a Problem. */
export function parseJson(text: string): unknown {
  // JavaScript counts the byte order mark to white space; JSON does not.
  if (/^[ \t\n\r]*$/.test(text)) return undefined;
  if (text.startsWith('\uFEFF')) {
    throw new Problem('InvalidJson', 'The body begins with a byte order mark; send JSON in UTF-8 without one.');
  }
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    const problem = findJsonProblem(text);
    const place = `line ${problem.line}, column ${problem.column}`;
    throw new Problem('InvalidJson', `The body is no JSON: ${place}: ${describeProblem(problem)}.`);
  }
  checkDepth(value, '', MAX_DEPTH);
  checkKeys(value);
  const broken = loneSurrogateAt(value);
  if (broken !== undefined) {
    const field = clip(broken.toWellFormed(), KiB);
    throw new Problem('TextNotUnicode', `${field || 'The body'} ${LONE_SURROGATE}.`, {
      fields: [{ field, message: LONE_SURROGATE }],
    });
  }
  const lost = lostNumber(value);
  if (lost) {
    const field = clip(lost.path, KiB);
    const number = clip(lost.number, KiB);
    const message = `the number ${number} cannot be kept exactly; send it as a string: "${number}"`;
    throw new Problem('NumberNotExact', field ? `${field}: ${message}` : `The body: ${message}`, {
      fields: [{ field, message }],
    });
  }
  return value;
}

/** Refuses the key `__proto__` in fields whose keys have a meaning; what agents get may have any. */
function checkKeys(value: unknown): void {
  const path = prototypeKeyAt(value, (path) => path === 'spec.input' || path === 'spec.response');
  if (path === undefined) return;
  const field = clip(path === '' ? '__proto__' : `${path}.__proto__`, KiB);
  const message = 'is no key that can be kept; leave it out';
  throw new Problem('Invalid', `${field} ${message}.`, { fields: [{ field, message }] });
}

/** Throws a Problem that names the path which is nested too deep; `field` is the value's own path. */
export function checkDepth(value: unknown, field: string, levels = MAX_JSON_DEPTH): void {
  const place = tooDeepAt(value, field, levels);
  if (place === undefined) return;
  const message = `has more than ${MAX_JSON_DEPTH} arrays and objects within each other, at ${place}. Flatten it, or send the data as a string`;
  throw new Problem('InputTooDeep', `${field || 'The body'} ${message}.`, {
    fields: [{ field: field || place, message }],
  });
}
