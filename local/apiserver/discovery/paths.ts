import type { ResourceType } from '../registry/types.ts';

/** Returns `api/v1` or `apis/GROUP/VERSION`. */
export const basePath = ({ group, version }: ResourceType) =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`;

/** Returns the collection's path as OpenAPI writes it: with `{namespace}` where the kind has one. */
export const collectionPath = (type: ResourceType) =>
  `/${basePath(type)}${type.namespaced ? '/namespaces/{namespace}' : ''}/${type.plural}`;
