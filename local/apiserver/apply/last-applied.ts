import { type ApiObject, clone, equal } from '../object.ts';
import type { Schema } from '../validation/schema.ts';
import { type FieldSet, fieldsOf, valueAt } from './field-set.ts';

const annotation = 'kubectl.kubernetes.io/last-applied-configuration';

/** Name of the manager whose fields are carried over from client-side to server-side apply: kubectl's. */
const kubectl = 'kubectl';

function lastApplied(live: ApiObject, manager: string): ApiObject | undefined {
  const text = manager === kubectl ? live.metadata.annotations?.[annotation] : undefined;
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as ApiObject;
  } catch {
    return undefined;
  }
}

/**
 * Returns the fields that are still as kubectl once applied them on the client side. They belong to no other manager,
 * whatever their manager is called.
 */
export function takenOver(live: ApiObject, schema: Schema, manager: string): FieldSet {
  const configuration = lastApplied(live, manager);
  if (!configuration) return new Set();
  const unchanged = [...fieldsOf(configuration, schema, false)].filter((path) =>
    equal(valueAt(configuration, schema, path), valueAt(live, schema, path)),
  );
  return new Set(unchanged);
}

/** Updates the annotation, so that the next apply from the client's side starts from the present state. */
export function refreshLastApplied(
  merged: ApiObject,
  live: ApiObject,
  configuration: ApiObject,
  manager: string,
): void {
  if (!lastApplied(live, manager)) return;
  const applied = clone(configuration);
  delete applied.metadata.annotations?.[annotation];
  merged.metadata = {
    ...merged.metadata,
    annotations: { ...merged.metadata.annotations, [annotation]: `${JSON.stringify(applied)}\n` },
  };
}
