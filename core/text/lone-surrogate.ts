import { fieldPath } from '../json.ts';

/**
 * Returns the path of the first string or key in the value that has half of a surrogate pair; undefined if there is none. UTF-8 has no
 * form of it, so an API server stores U+FFFD in its place. `path`: the path of the value itself.
 */
export function loneSurrogateAt(value: unknown, path = ''): string | undefined {
  const waiting = [{ value, path }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, path } = next;
    if (typeof value === 'string' && !value.isWellFormed()) return path;
    if (typeof value !== 'object' || value === null) continue;
    const isList = Array.isArray(value);
    for (const [key, child] of Object.entries(value).reverse()) {
      const place = isList ? `${path}[${key}]` : fieldPath(path, key);
      if (!key.isWellFormed()) return place;
      if (typeof child === 'string' || (typeof child === 'object' && child !== null)) {
        waiting.push({ value: child, path: place });
      }
    }
  }
  return undefined;
}

/** What is wrong with such a string, and what to do. */
export const LONE_SURROGATE =
  'has half of a surrogate pair (\\ud800 to \\udfff alone), which is no character and cannot be kept; write whole characters, or bytes as base64';
