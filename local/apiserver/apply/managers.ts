import { type ApiObject, type ManagedFieldsEntry, timestamp } from '../object.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';
import { changedFields, type FieldSet, fieldsOf, fromFieldsV1, isBelow, pathOf, toFieldsV1 } from './field-set.ts';
import { typedSchema } from './schema.ts';

/** Writer of an object in field management. */
export interface Manager {
  name: string;
  operation: 'Apply' | 'Update';
  subresource?: 'status' | undefined;
}

/** Fields that one manager has set. */
export interface Owner {
  entry: Omit<ManagedFieldsEntry, 'fieldsV1'>;
  fields: FieldSet;
}

/** Fields without a manager: those that identify the object or that the server sets. */
const unmanaged = [
  'apiVersion',
  'kind',
  'metadata',
  'metadata.name',
  'metadata.namespace',
  'metadata.generateName',
  'metadata.uid',
  'metadata.resourceVersion',
  'metadata.generation',
  'metadata.creationTimestamp',
  'metadata.deletionTimestamp',
  'metadata.deletionGracePeriodSeconds',
  'metadata.managedFields',
].map((path) => pathOf(...path.split('.')));

export function withoutIdentity(fields: FieldSet): FieldSet {
  const managedFields = pathOf('metadata', 'managedFields');
  return new Set([...fields].filter((path) => !unmanaged.includes(path) && !isBelow(path, managedFields)));
}

export const isEntryOf = (entry: Owner['entry'], manager: Manager) =>
  entry.manager === manager.name && entry.operation === manager.operation && entry.subresource === manager.subresource;

/**
 * Manager name of kubectl's client-side apply. kubectl finds its fields by this name to take them over with server-side
 * apply.
 */
const clientSideApply = 'kubectl-client-side-apply';

/** Sets the manager of a new object, but only for kubectl's client-side apply, which looks for its fields later. */
export function trackCreate(object: ApiObject, type: ResourceType, fieldManager: string, now: number): void {
  if (fieldManager !== clientSideApply || object.metadata.managedFields) return;
  const fields = withoutIdentity(fieldsOf(object, typedSchema(type), true));
  const entry = newEntry({ name: fieldManager, operation: 'Update' }, type, now);
  object.metadata.managedFields = toManagedFields([{ entry, fields }]);
}

/**
 * Returns the managers. An object that was never applied has none here: all its fields then belong to whoever wrote it
 * before.
 */
export function ownersOf(object: ApiObject, type: ResourceType): Owner[] {
  const entries = object.metadata.managedFields;
  if (entries?.length) {
    return entries.map(({ fieldsV1, ...entry }) => ({ entry, fields: fromFieldsV1(fieldsV1) }));
  }
  return [
    {
      entry: {
        manager: 'before-first-apply',
        operation: 'Update',
        apiVersion: groupVersion(type),
        time: object.metadata.creationTimestamp as string,
        fieldsType: 'FieldsV1',
      },
      fields: withoutIdentity(fieldsOf(object, typedSchema(type), true)),
    },
  ];
}

export function newEntry(manager: Manager, type: ResourceType, now: number): Owner['entry'] {
  return {
    manager: manager.name,
    operation: manager.operation,
    apiVersion: groupVersion(type),
    time: timestamp(now),
    fieldsType: 'FieldsV1',
    ...(manager.subresource ? { subresource: manager.subresource } : {}),
  };
}

const order = ({ operation, time, manager, subresource }: ManagedFieldsEntry) =>
  [operation, time, manager, subresource ?? ''].join('\u0000');

/** Converts managers to the stored form: appliers first, then by time; managers without fields are left out. */
export function toManagedFields(owners: Owner[]): ManagedFieldsEntry[] {
  return owners
    .filter(({ fields }) => fields.size > 0)
    .map(({ entry, fields }) => ({ ...entry, fieldsV1: toFieldsV1(fields) }))
    .sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/**
 * Makes the writer of an update the manager of the fields that it changed. Objects that were never applied stay
 * unchanged.
 */
export function trackUpdate(
  updated: ApiObject,
  current: ApiObject,
  type: ResourceType,
  manager: Manager,
  now: number,
): void {
  if (!updated.metadata.managedFields?.length) return;
  const schema = typedSchema(type);
  const difference = changedFields(current, updated, schema);
  const changed = withoutIdentity(difference.changed);
  const gone = changed.union(difference.removed);
  const owners = ownersOf(updated, type).map((owner) => ({
    ...owner,
    fields: isEntryOf(owner.entry, manager)
      ? owner.fields.difference(difference.removed)
      : owner.fields.difference(gone),
  }));
  if (changed.size > 0) {
    const own = owners.find(({ entry }) => isEntryOf(entry, manager));
    if (own) {
      own.fields = own.fields.union(changed);
      own.entry = newEntry(manager, type, now);
    } else owners.push({ entry: newEntry(manager, type, now), fields: changed });
  }
  updated.metadata.managedFields = toManagedFields(owners);
}
