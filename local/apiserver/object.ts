import { isRawNumber } from '../../core/json.ts';
import type { ObjectMeta } from '../../core/kube/types.ts';

/** Any JSON object. */
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

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);

/** A copy that may be changed. JSON values only. */
export function clone<T>(value: T): T {
  if (Array.isArray(value)) return value.map(clone) as T;
  if (isObject(value)) {
    const copy: Json = {};
    for (const key of Object.keys(value)) copy[key] = clone(value[key]);
    return copy as T;
  }
  return value;
}

/** Freezes a JSON value in place, all the way down. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) freeze(child);
  return value;
}

/** True where two JSON values are the same, whatever the order of keys. */
export function equal(one: unknown, other: unknown): boolean {
  // Not recursive: users may nest what they store some thousands deep.
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

/** The value below `path`, undefined where something on the way is missing or no object. */
export function at(value: unknown, ...path: string[]): unknown {
  let here = value;
  for (const step of path) {
    if (!isObject(here) || !Object.hasOwn(here, step)) return undefined;
    here = here[step];
  }
  return here;
}

/** RFC 3339 with whole seconds, as metadata has it. */
export const timestamp = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
