import { lostNumber, parseExact } from '../core/json.ts';
import { clip, KiB } from '../core/resources/limits.ts';
import { Problem } from './problems.ts';

/** Deeper than any real input, and far from where recursive code runs out of stack. */
const MAX_DEPTH = 100;

/** The value of a JSON text; undefined for an empty one. Throws a Problem. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = parseExact(text);
  } catch (error) {
    throw new Problem('InvalidJson', `The body is no JSON: ${(error as Error).message}`);
  }
  if (depthOf(text) > MAX_DEPTH) {
    throw new Problem('InvalidJson', `The body is nested more than ${MAX_DEPTH} levels deep. Flatten it.`);
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

/** How deep arrays and objects of a valid JSON text are nested. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth);
    else if (char === '}' || char === ']') depth--;
  }
  return deepest;
}
