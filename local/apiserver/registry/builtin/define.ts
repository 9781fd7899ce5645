import { age } from '../../../../core/table/age.ts';
import { type ApiObject, at } from '../../object.ts';
import { type Column, type ResourceType, storageName, type Verb } from '../types.ts';

const allVerbs: Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

type Definition = Pick<ResourceType, 'plural' | 'kind'> & Partial<ResourceType>;

/** Defines a built-in resource, with the defaults that fit most of them. */
export function builtin(definition: Definition): ResourceType {
  const group = definition.group ?? '';
  return {
    group,
    version: 'v1',
    singular: definition.kind.toLowerCase(),
    listKind: `${definition.kind}List`,
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    storage: storageName(group, definition.plural),
    custom: false,
    columns: [nameColumn, ageColumn],
    selectable: {},
    status: false,
    generation: false,
    ...definition,
  };
}

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  cell: (object) => object.metadata.name,
};

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  cell: (object, now) => age(object.metadata.creationTimestamp, now),
};

/** Returns a column that shows a field as it is. */
export const fieldColumn = (name: string, ...path: string[]): Column => ({
  name,
  type: 'string',
  cell: (object) => text(at(object, ...path)),
});

export const text = (value: unknown) => (value === undefined || value === null ? '' : String(value));

/** Returns a reader of a field for field selectors. */
export const field =
  (...path: string[]) =>
  (object: ApiObject) =>
    text(at(object, ...path));
