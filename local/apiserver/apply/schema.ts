import { metadataSchema } from '../discovery/metadata-schema.ts';
import { mergedSets, mergeKeys } from '../patch/merge-keys.ts';
import type { ResourceType } from '../registry/types.ts';
import type { Schema } from '../validation/schema.ts';

const schemas = new WeakMap<ResourceType, Schema>();

/** Returns the schema of a whole object with all list types, those of metadata and the built-in kinds too. */
export function typedSchema(type: ResourceType): Schema {
  let schema = schemas.get(type);
  if (!schema) {
    const own = type.custom ? (type.schema ?? {}) : withListTypes(type.schema ?? {});
    schema = { ...own, properties: { ...own.properties, metadata: metadataSchema } };
    schemas.set(type, schema);
  }
  return schema;
}

/** Adds list types from the strategic merge keys, because the schemas of built-in kinds have none. */
function withListTypes(schema: Schema, field = ''): Schema {
  const result: Schema = { ...schema };
  if (schema.properties) {
    result.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => [name, withListTypes(child, name)]),
    );
  }
  if (schema.items) {
    result.items = withListTypes(schema.items);
    const key = mergeKeys[field];
    if (key !== undefined && schema.items.properties) {
      result['x-kubernetes-list-type'] = 'map';
      result['x-kubernetes-list-map-keys'] = [key];
    } else if (mergedSets.has(field)) result['x-kubernetes-list-type'] = 'set';
  }
  return result;
}
