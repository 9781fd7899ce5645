import { isJsonObject, isRawNumber } from '../../core/json.ts';
import type { ObjectMeta } from '../../core/kube/types.ts';

/** JSON object of any kind. */
export type Json = Record<string, unknown>;

export interface ManagedFieldsEntry {
  manager: string;
  operation: 'Apply' | 'Update';
  apiVersion: string;
  time?: string;
  fieldsType: 'FieldsV1';
  fieldsV1: Json;
  subresource?: string;
}

export type Meta = ObjectMeta & { managedFields?: ManagedFieldsEntry[] };

/** An object of any kind as it is stored and sent. Stored ones are frozen. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  [field: string]: unknown;
}

export const isObject: (value: unknown) => value is Json = isJsonObject;

/** Copies a JSON value, so that it may be changed. */
export function clone<T>(value: T): T {
  if (Array.isArray(value)) return value.map(clone) as T;
  if (isObject(value)) {
    const copy: Json = {};
    for (const key of Object.keys(value)) copy[key] = clone(value[key]);
    return copy as T;
  }
  return value;
}

/** Freezes a JSON value in place, with all nested values. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
  return value;
}

/** True if two JSON values are equal; the order of keys does not count. */
export function equal(one: unknown, other: unknown): boolean {
  // The comparison is iterative, because users may nest stored values some thousands deep.
  const waiting: [unknown, unknown][] = [[one, other]];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [a, b] = next;
    if (Object.is(a, b)) continue;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
    if (Array.isArray(a) !== Array.isArray(b) || isRawNumber(a) !== isRawNumber(b)) return false;
    const keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false;
      waiting.push([(a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]]);
    }
  }
  return true;
}

/** Returns the value below `path`; undefined where a step is missing or not an object. */
export function at(value: unknown, ...path: string[]): unknown {
  let here = value;
  for (const step of path) {
    if (!isObject(here) || !Object.hasOwn(here, step)) return undefined;
    here = here[step];
  }
  return here;
}

/** Formats RFC 3339 with whole seconds, as in metadata. */
export const timestamp = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
