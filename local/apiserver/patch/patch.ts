import { badRequest, unsupportedMediaType } from '../errors.ts';
import { isObject, type Json } from '../object.ts';
import type { ResourceType } from '../registry/types.ts';
import { jsonPatch } from './json-patch.ts';
import { strategicMerge } from './strategic.ts';

export const applyType = 'application/apply-patch+yaml';
const strategicType = 'application/strategic-merge-patch+json';

/** Returns the patch types of a resource, in the order in which the API server lists them. */
const patchTypes = (type: ResourceType) => [
  'application/json-patch+json',
  'application/merge-patch+json',
  applyType,
  ...(type.custom ? [] : [strategicType]),
];

/**
 * Returns a function from the current object to the patched one; throws 415 for a patch type that the resource does not
 * accept.
 */
export function patcher(type: ResourceType, mediaType: string, patch: unknown): (current: unknown) => unknown {
  switch (mediaType) {
    case 'application/json-patch+json':
      return (current) => jsonPatch(current, patch);
    case 'application/merge-patch+json':
      checkObject(patch);
      return (current) => mergePatch(current, patch);
    case strategicType:
      if (type.custom) break;
      checkObject(patch);
      return (current) => strategicMerge(current, patch);
  }
  throw unsupportedMediaType(patchTypes(type));
}

function checkObject(patch: unknown): void {
  if (!isObject(patch)) throw badRequest('error decoding patch: a patch of this type is an object');
}

/** JSON Merge Patch (RFC 7386): null removes, objects are merged, everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: Json = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(Object.hasOwn(result, key) ? result[key] : undefined, value);
  }
  return result;
}
