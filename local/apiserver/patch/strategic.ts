import { equal, isObject, type Json } from '../object.ts';
import { mergedSets, mergeKeys } from './merge-keys.ts';

/** Applies a merge patch that knows lists: `kubectl apply`, `edit` and `patch` send it for built-in kinds. */
export function strategicMerge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  if (patch.$patch === 'replace') return without(patch, '$patch');
  const result: Json = isObject(target) ? { ...target } : {};
  if (patch.$patch === 'delete') return {};
  const retained = patch.$retainKeys;
  if (Array.isArray(retained)) {
    for (const key of Object.keys(result)) if (!retained.includes(key)) delete result[key];
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) mergeDirective(result, key, value);
    else if (value === null) delete result[key];
    else result[key] = mergeField(key, Object.hasOwn(result, key) ? result[key] : undefined, value, patch);
  }
  return result;
}

function without(object: Json, key: string): Json {
  const { [key]: _, ...rest } = object;
  return rest;
}

function mergeDirective(result: Json, key: string, value: unknown): void {
  const field = /^\$deleteFromPrimitiveList\/(.*)$/.exec(key)?.[1];
  const list = field === undefined ? undefined : result[field];
  if (field === undefined || !Array.isArray(list) || !Array.isArray(value)) return;
  result[field] = list.filter((item) => !value.some((gone) => equal(gone, item)));
}

function mergeField(field: string, current: unknown, patch: unknown, parent: Json): unknown {
  if (!Array.isArray(patch)) return strategicMerge(current, patch);
  const before = Array.isArray(current) ? current : [];
  const key = mergeKeys[field];
  const order = parent[`$setElementOrder/${field}`];
  if (mergedSets.has(field)) {
    const merged = [...before, ...patch.filter((item) => !before.some((other) => equal(other, item)))];
    return ordered(merged, order, (item) => item);
  }
  if (key === undefined || !patch.every(isObject)) return patch;
  if (patch.some((item) => isObject(item) && item.$patch === 'replace')) {
    return patch.filter((item) => isObject(item) && item.$patch !== 'replace');
  }
  return ordered(mergeList(before, patch, key), order, (item) => (isObject(item) ? item[key] : item));
}

function mergeList(before: unknown[], patch: Json[], key: string): unknown[] {
  const result = [...before];
  for (const item of patch) {
    const index = result.findIndex((other) => isObject(other) && other[key] === item[key]);
    if (item.$patch === 'delete') {
      if (index >= 0) result.splice(index, 1);
    } else if (index >= 0) result[index] = strategicMerge(result[index], item);
    else result.push(strategicMerge({}, item));
  }
  return result;
}

/** Sorts a list by `$setElementOrder`; items that it does not name keep their place at the end. */
function ordered(list: unknown[], order: unknown, identity: (item: unknown) => unknown): unknown[] {
  if (!Array.isArray(order)) return list;
  const wanted = order.map(identity);
  const place = (item: unknown) => {
    const index = wanted.findIndex((other) => equal(other, identity(item)));
    return index < 0 ? wanted.length : index;
  };
  return list.toSorted((a, b) => place(a) - place(b));
}
