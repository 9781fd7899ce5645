/**
 * Field number to name and type: a scalar, `time`, `raw`, another message, `[]` for a list, `map:` for a map of
 * strings.
 */
type Message = Record<number, [name: string, type: string]>;

const named = (fields: string[], type = 'string'): Message =>
  Object.fromEntries(fields.map((name, i) => [i + 1, [name, type]]));

const role: Message = { 1: ['metadata', 'ObjectMeta'], 2: ['rules', '[]PolicyRule'] };
const binding: Message = {
  1: ['metadata', 'ObjectMeta'],
  2: ['subjects', '[]Subject'],
  3: ['roleRef', 'RoleRef'],
};
const review = (spec: string): Message => ({ 1: ['metadata', 'ObjectMeta'], 2: ['spec', spec] });

/** Kinds that kubectl's typed clients send. */
export const kinds = [
  'ClusterRole',
  'ClusterRoleBinding',
  'ConfigMap',
  'DeleteOptions',
  'Namespace',
  'Role',
  'RoleBinding',
  'Secret',
  'SelfSubjectAccessReview',
  'SelfSubjectReview',
  'SelfSubjectRulesReview',
  'ServiceAccount',
  'SubjectAccessReview',
  'TokenRequest',
  'TokenReview',
];

/** Messages of these kinds and of their parts: the numbers are part of Kubernetes' API. */
export const messages: Record<string, Message> = {
  Unknown: { 1: ['typeMeta', 'TypeMeta'], 2: ['raw', 'raw'] },
  TypeMeta: named(['apiVersion', 'kind']),
  Time: { 1: ['seconds', 'int'] },
  ObjectMeta: {
    1: ['name', 'string'],
    2: ['generateName', 'string'],
    3: ['namespace', 'string'],
    5: ['uid', 'string'],
    6: ['resourceVersion', 'string'],
    8: ['creationTimestamp', 'time'],
    11: ['labels', 'map:string'],
    12: ['annotations', 'map:string'],
    13: ['ownerReferences', '[]OwnerReference'],
    14: ['finalizers', '[]string'],
  },
  OwnerReference: {
    1: ['kind', 'string'],
    3: ['name', 'string'],
    4: ['uid', 'string'],
    5: ['apiVersion', 'string'],
    6: ['controller', 'bool'],
    7: ['blockOwnerDeletion', 'bool'],
  },
  DeleteOptions: {
    1: ['gracePeriodSeconds', 'int'],
    2: ['preconditions', 'Preconditions'],
    3: ['orphanDependents', 'bool'],
    4: ['propagationPolicy', 'string'],
    5: ['dryRun', '[]string'],
  },
  Preconditions: named(['uid', 'resourceVersion']),
  Namespace: { 1: ['metadata', 'ObjectMeta'] },
  ConfigMap: {
    1: ['metadata', 'ObjectMeta'],
    2: ['data', 'map:string'],
    3: ['binaryData', 'map:bytes'],
    4: ['immutable', 'bool'],
  },
  Secret: {
    1: ['metadata', 'ObjectMeta'],
    2: ['data', 'map:bytes'],
    3: ['type', 'string'],
    4: ['stringData', 'map:string'],
    5: ['immutable', 'bool'],
  },
  ServiceAccount: { 1: ['metadata', 'ObjectMeta'], 4: ['automountServiceAccountToken', 'bool'] },
  Role: role,
  ClusterRole: role,
  PolicyRule: named(['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'], '[]string'),
  RoleBinding: binding,
  ClusterRoleBinding: binding,
  Subject: named(['kind', 'apiGroup', 'name', 'namespace']),
  RoleRef: named(['apiGroup', 'kind', 'name']),
  TokenRequest: review('TokenRequestSpec'),
  TokenRequestSpec: { 1: ['audiences', '[]string'], 4: ['expirationSeconds', 'int'] },
  TokenReview: review('TokenReviewSpec'),
  TokenReviewSpec: { 1: ['token', 'string'], 2: ['audiences', '[]string'] },
  SelfSubjectReview: {},
  SelfSubjectRulesReview: review('SelfSubjectRulesReviewSpec'),
  SelfSubjectRulesReviewSpec: named(['namespace']),
  SelfSubjectAccessReview: review('SubjectAccessReviewSpec'),
  SubjectAccessReview: review('SubjectAccessReviewSpec'),
  SubjectAccessReviewSpec: {
    1: ['resourceAttributes', 'ResourceAttributes'],
    2: ['nonResourceAttributes', 'NonResourceAttributes'],
    3: ['user', 'string'],
    4: ['groups', '[]string'],
  },
  ResourceAttributes: named(['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name']),
  NonResourceAttributes: named(['path', 'verb']),
};
