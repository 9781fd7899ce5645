import { fieldPath, isRawNumber } from './json.ts';
import { clip, MAX_JSON_DEPTH } from './resources/limits.ts';

/** Limit of a path in messages; a longer path is cut; bytes. */
const MAX_PATH_BYTES = 256;

interface Place {
  value: object;
  /** Key in the enclosing array or object. */
  key: string;
  above: Place | undefined;
  level: number;
}

/**
 * Returns the path of an array or object that is nested deeper than `levels`; undefined when there is none. The value
 * itself is the first level, and `path` is its path. Iterative instead of recursive, so any value that could be parsed
 * can be checked.
 */
export function tooDeepAt(value: unknown, path: string, levels = MAX_JSON_DEPTH): string | undefined {
  const waiting: Place[] = isContainer(value) ? [{ value, key: '', above: undefined, level: 1 }] : [];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    if (next.level > levels) return pathOf(next, path);
    const level = next.level + 1;
    if (Array.isArray(next.value)) {
      for (let i = 0; i < next.value.length; i++) {
        const child: unknown = next.value[i];
        if (isContainer(child)) waiting.push({ value: child, key: String(i), above: next, level });
      }
      continue;
    }
    for (const key of Object.keys(next.value)) {
      const child = (next.value as Record<string, unknown>)[key];
      if (isContainer(child)) waiting.push({ value: child, key, above: next, level });
    }
  }
  return undefined;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !isRawNumber(value);
}

function pathOf(place: Place, root: string): string {
  const places: Place[] = [];
  for (let at: Place | undefined = place; at; at = at.above) places.unshift(at);
  const path = places.reduce((path, { key, above }) => {
    if (!above) return path;
    return Array.isArray(above.value) ? `${path}[${key}]` : fieldPath(path, key);
  }, root);
  return clip(path, MAX_PATH_BYTES);
}
