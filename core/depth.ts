import { fieldPath, isRawNumber } from './json.ts';
import { clip, MAX_JSON_DEPTH } from './resources/limits.ts';

/** Longer paths are cut in messages; bytes. */
const MAX_PATH_BYTES = 256;

interface Place {
  value: object;
  /** In the array or object above. */
  key: string;
  above: Place | undefined;
  level: number;
}

/**
 * The path of an array or object that lies deeper than `levels` arrays and objects allow, the value itself being the first;
 * undefined when there is none. Not recursive, so any value that could be parsed can be checked. `path` is that of the value.
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
