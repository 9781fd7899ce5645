import { isRawNumber } from '../../core/json.ts';

/**
 * Returns the value at a JSON pointer (RFC 6901); undefined where there is none. The empty pointer is the whole value.
 */
export function valueAt(value: unknown, pointer: string): unknown {
  let found = value;
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || isRawNumber(found) || !Object.hasOwn(found, key))
      return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}
