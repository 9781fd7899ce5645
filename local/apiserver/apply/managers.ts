import { type ApiObject, type ManagedFieldsEntry, timestamp } from '../object.ts';
import { groupVersion, type ResourceType } from '../registry/types.ts';
import { changedFields, type FieldSet, fieldsOf, fromFieldsV1, isBelow, pathOf, toFieldsV1 } from './field-set.ts';
import { typedSchema } from './schema.ts';

/** Who writes, as field management knows it. */
export interface Manager {
  name: string;
  operation: 'Apply' | 'Update';
  subresource?: 'status' | undefined;
}

/** What one manager has set. */
export interface Owner {
  entry: Omit<ManagedFieldsEntry, 'fieldsV1'>;
  fields: FieldSet;
}

/** What identifies an object or is kept by the server is nobody's. */
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

/** By this name kubectl finds what it applied from its side, to take it over when it applies on the server's. */
const clientSideApply = 'kubectl-client-side-apply';

/** A new object has managers only where they are asked for later: kubectl asks for its own. */
export function trackCreate(object: ApiObject, type: ResourceType, fieldManager: string, now: number): void {
  if (fieldManager !== clientSideApply || object.metadata.managedFields) return;
  const fields = withoutIdentity(fieldsOf(object, typedSchema(type), true));
  const entry = newEntry({ name: fieldManager, operation: 'Update' }, type, now);
  object.metadata.managedFields = toManagedFields([{ entry, fields }]);
}

/** An object that nobody ever applied has no managers here: all its fields then belong to whoever wrote it before. */
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

/** As stored: appliers first, then by time; nobody without fields. */
export function toManagedFields(owners: Owner[]): ManagedFieldsEntry[] {
  return owners
    .filter(({ fields }) => fields.size > 0)
    .map(({ entry, fields }) => ({ ...entry, fieldsV1: toFieldsV1(fields) }))
    .sort((a, b) => (order(a) < order(b) ? -1 : 1));
}

/** Hands the fields that an update changed over to who made it. Objects that were never applied are left alone. */
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
