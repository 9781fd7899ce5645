import { isRawNumber } from '../../core/json.ts';

/** What a JSON pointer (RFC 6901) finds in a value; undefined where there is nothing. The empty pointer finds all of it. */
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
