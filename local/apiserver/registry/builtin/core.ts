import { type FieldError, forbiddenField, invalid, required } from '../../fields.ts';
import { type ApiObject, at, equal, isObject } from '../../object.ts';
import type { ResourceType } from '../types.ts';
import { ageColumn, builtin, field, fieldColumn, nameColumn } from './define.ts';
import { builtinSchema } from './schemas.ts';

const dataKey = /^[-._a-zA-Z0-9]+$/;
const keyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

const size = (value: unknown) => (isObject(value) ? Object.keys(value).length : 0);

function keyErrors(data: unknown, path: string): FieldError[] {
  if (!isObject(data)) return [];
  return Object.keys(data)
    .filter((key) => !dataKey.test(key))
    .map((key) => invalid(`${path}[${key}]`, key, keyMessage));
}

/** Refuses changes of data in an object marked immutable. */
function immutableErrors(object: ApiObject, old: ApiObject | undefined, fields: string[]): FieldError[] {
  if (old?.immutable !== true) return [];
  const errors = fields
    .filter((name) => !equal(object[name], old[name]))
    .map((name) => forbiddenField(name, 'field is immutable when `immutable` is set'));
  if (object.immutable !== true) errors.push(forbiddenField('immutable', 'field is immutable when `immutable` is set'));
  return errors;
}

const secrets = builtin({
  plural: 'secrets',
  kind: 'Secret',
  schema: builtinSchema('V1Secret'),
  selectable: { type: field('type') },
  columns: [
    nameColumn,
    fieldColumn('Type', 'type'),
    { name: 'Data', type: 'string', cell: (object) => size(object.data) },
    ageColumn,
  ],
  prepareCreate: secretData,
  prepareUpdate: secretData,
  validate(object, old) {
    const errors = [...keyErrors(object.data, 'data'), ...immutableErrors(object, old, ['data', 'type'])];
    if (old && old.type !== object.type) errors.push(invalid('type', object.type, 'field is immutable'));
    return errors;
  },
});

/** Moves `stringData` into `data`; it is never stored. */
function secretData(secret: ApiObject): void {
  if (isObject(secret.stringData)) {
    const data = isObject(secret.data) ? secret.data : {};
    for (const [key, value] of Object.entries(secret.stringData))
      data[key] = Buffer.from(String(value)).toString('base64');
    secret.data = data;
  }
  delete secret.stringData;
  secret.type ||= 'Opaque';
}

const configMaps = builtin({
  plural: 'configmaps',
  kind: 'ConfigMap',
  schema: builtinSchema('V1ConfigMap'),
  shortNames: ['cm'],
  columns: [
    nameColumn,
    { name: 'Data', type: 'string', cell: (object) => size(object.data) + size(object.binaryData) },
    ageColumn,
  ],
  validate: (object, old) => [
    ...keyErrors(object.data, 'data'),
    ...keyErrors(object.binaryData, 'binaryData'),
    ...immutableErrors(object, old, ['data', 'binaryData']),
  ],
});

const namespaces = builtin({
  plural: 'namespaces',
  kind: 'Namespace',
  schema: builtinSchema('V1Namespace'),
  shortNames: ['ns'],
  namespaced: false,
  nameRule: 'label',
  status: true,
  selectable: { 'status.phase': field('status', 'phase') },
  columns: [nameColumn, fieldColumn('Status', 'status', 'phase'), ageColumn],
  prepareCreate(object) {
    object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
    object.spec = { finalizers: ['kubernetes'] };
    object.status = { phase: 'Active' };
  },
  prepareUpdate(object, old) {
    object.metadata.labels = { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name };
    object.spec = old.spec;
    object.status = old.status;
  },
  holdsDeletion(object) {
    object.status = { ...(object.status as object), phase: 'Terminating' };
    return true;
  },
});

const serviceAccounts = builtin({
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  schema: builtinSchema('V1ServiceAccount'),
  shortNames: ['sa'],
  columns: [
    nameColumn,
    { name: 'Secrets', type: 'string', cell: (object) => (Array.isArray(object.secrets) ? object.secrets.length : 0) },
    ageColumn,
  ],
});

const nodes = builtin({
  plural: 'nodes',
  kind: 'Node',
  schema: builtinSchema('V1Node'),
  shortNames: ['no'],
  namespaced: false,
  status: true,
  selectable: { 'spec.unschedulable': field('spec', 'unschedulable') },
  columns: [
    nameColumn,
    { name: 'Status', type: 'string', cell: nodeStatus },
    { name: 'Roles', type: 'string', cell: () => '<none>' },
    ageColumn,
    fieldColumn('Version', 'status', 'nodeInfo', 'kubeletVersion'),
  ],
  prepareUpdate(object, old) {
    object.status = old.status;
  },
});

function nodeStatus(node: ApiObject): string {
  const conditions = at(node, 'status', 'conditions');
  const ready = Array.isArray(conditions) && conditions.find((c: { type: string }) => c.type === 'Ready');
  if (!ready) return 'Unknown';
  return ready.status === 'True' ? 'Ready' : 'NotReady';
}

const persistentVolumeClaims = builtin({
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  schema: builtinSchema('V1PersistentVolumeClaim'),
  shortNames: ['pvc'],
  status: true,
  columns: [
    nameColumn,
    fieldColumn('Status', 'status', 'phase'),
    fieldColumn('StorageClass', 'spec', 'storageClassName'),
    ageColumn,
  ],
  prepareCreate(object) {
    object.spec = { volumeMode: 'Filesystem', ...(object.spec as object) };
    object.status = { phase: 'Pending' };
  },
  prepareUpdate(object, old) {
    object.status = old.status;
  },
  validate(object, old) {
    const errors: FieldError[] = [];
    const modes = at(object, 'spec', 'accessModes');
    if (!Array.isArray(modes) || modes.length === 0) errors.push(required('spec.accessModes'));
    if (at(object, 'spec', 'resources', 'requests', 'storage') === undefined) {
      errors.push(required('spec.resources[storage]'));
    }
    if (old && !equal(withoutRequests(object.spec), withoutRequests(old.spec))) {
      const message = 'spec is immutable after creation except resources.requests';
      errors.push(forbiddenField('spec', `${message} and volumeAttributesClassName for bound claims`));
    }
    return errors;
  },
});

function withoutRequests(spec: unknown): object {
  return isObject(spec) ? { ...spec, resources: undefined } : {};
}

const leases = builtin({
  group: 'coordination.k8s.io',
  plural: 'leases',
  kind: 'Lease',
  schema: builtinSchema('V1Lease'),
  columns: [nameColumn, fieldColumn('Holder', 'spec', 'holderIdentity'), ageColumn],
  validate(object) {
    const duration = at(object, 'spec', 'leaseDurationSeconds');
    const transitions = at(object, 'spec', 'leaseTransitions');
    const errors: FieldError[] = [];
    if (typeof duration === 'number' && duration <= 0) {
      errors.push(invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0'));
    }
    if (typeof transitions === 'number' && transitions < 0) {
      errors.push(invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'));
    }
    return errors;
  },
});

export const coreResources: ResourceType[] = [
  namespaces,
  secrets,
  configMaps,
  serviceAccounts,
  nodes,
  persistentVolumeClaims,
  leases,
];
