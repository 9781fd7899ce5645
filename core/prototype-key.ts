import { isRawNumber } from './json.ts';

/**
 * Key by which JavaScript reaches the prototype of an object. An assignment to it loses the value without a word, so code that
 * copies objects key by key cannot keep it.
 */
const KEY = '__proto__';

/**
 * Returns the path of the first object in the JSON value that has the key `__proto__`, empty for the value itself; undefined when
 * none has. A string of that text is no key. Iterative, as users may nest values some thousands deep.
 */
export function prototypeKeyAt(value: unknown, isLeftOut = (_path: string) => false): string | undefined {
  const waiting = [{ value, path: '' }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, path } = next;
    if (typeof value !== 'object' || value === null || isRawNumber(value) || isLeftOut(path)) continue;
    if (Object.hasOwn(value, KEY)) return path;
    for (const [key, child] of Object.entries(value)) {
      if (typeof child !== 'object' || child === null) continue;
      waiting.push({ value: child, path: path === '' ? key : `${path}.${key}` });
    }
  }
  return undefined;
}

/** True if a JSON text may have the key: a text without it and without escapes has not. */
export const mayHavePrototypeKey = (text: string): boolean => text.includes(KEY) || text.includes('\\u');
