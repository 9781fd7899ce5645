import { type FieldError, invalid, notSupported, required } from '../../fields.ts';
import { type ApiObject, at, equal, isObject } from '../../object.ts';
import type { ResourceType } from '../types.ts';
import { ageColumn, builtin, nameColumn } from './define.ts';
import { builtinSchema } from './schemas.ts';

const bindingErrors = (object: ApiObject, old: ApiObject | undefined): FieldError[] => {
  const errors: FieldError[] = [];
  if (!at(object, 'roleRef', 'name')) errors.push(required('roleRef.name'));
  const subjects = Array.isArray(object.subjects) ? object.subjects : [];
  subjects.forEach((subject: { kind?: string; name?: string; namespace?: string }, i) => {
    if (!subject.name) errors.push(required(`subjects[${i}].name`));
    if (!subjectKinds.includes(subject.kind ?? '')) {
      errors.push(notSupported(`subjects[${i}].kind`, subject.kind ?? '', subjectKinds));
    } else if (subject.kind === 'ServiceAccount' && !subject.namespace && !object.metadata.namespace) {
      errors.push(required(`subjects[${i}].namespace`));
    }
  });
  if (old && !equal(object.roleRef, old.roleRef)) {
    errors.push(invalid('roleRef', object.roleRef, 'cannot change roleRef'));
  }
  return errors;
};

const subjectKinds = ['ServiceAccount', 'User', 'Group'];

function roleErrors(object: ApiObject): FieldError[] {
  const rules = Array.isArray(object.rules) ? object.rules : [];
  return rules.flatMap(
    (rule: { verbs?: unknown[]; resources?: unknown[]; apiGroups?: unknown[]; nonResourceURLs?: unknown[] }, i) => {
      const at = `rules[${i}]`;
      const errors: FieldError[] = [];
      if (!rule.verbs?.length) errors.push(required(`${at}.verbs`, 'verbs must contain at least one value'));
      if (rule.nonResourceURLs?.length) return errors;
      if (!rule.apiGroups?.length) {
        errors.push(required(`${at}.apiGroups`, 'resource rules must supply at least one api group'));
      }
      if (!rule.resources?.length) {
        errors.push(required(`${at}.resources`, 'resource rules must supply at least one resource'));
      }
      return errors;
    },
  );
}

const rbac = { group: 'rbac.authorization.k8s.io', nameRule: 'path' as const };
const createdAt = {
  name: 'Created At',
  type: 'date' as const,
  cell: (object: ApiObject) => object.metadata.creationTimestamp,
};
const roleColumn = {
  name: 'Role',
  type: 'string' as const,
  cell: (object: ApiObject) => `${at(object, 'roleRef', 'kind')}/${at(object, 'roleRef', 'name')}`,
};

const roles = builtin({
  ...rbac,
  plural: 'roles',
  kind: 'Role',
  schema: builtinSchema('V1Role'),
  columns: [nameColumn, createdAt],
  validate: roleErrors,
});
const clusterRoles = builtin({
  ...rbac,
  plural: 'clusterroles',
  kind: 'ClusterRole',
  schema: builtinSchema('V1ClusterRole'),
  namespaced: false,
  columns: [nameColumn, createdAt],
  validate: roleErrors,
});
const roleBindings = builtin({
  ...rbac,
  plural: 'rolebindings',
  kind: 'RoleBinding',
  schema: builtinSchema('V1RoleBinding'),
  columns: [nameColumn, roleColumn, ageColumn],
  prepareCreate: bindingDefaults,
  prepareUpdate: bindingDefaults,
  validate: bindingErrors,
});
const clusterRoleBindings = builtin({
  ...rbac,
  plural: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  schema: builtinSchema('V1ClusterRoleBinding'),
  namespaced: false,
  columns: [nameColumn, roleColumn, ageColumn],
  prepareCreate: bindingDefaults,
  prepareUpdate: bindingDefaults,
  validate: bindingErrors,
});

function bindingDefaults(binding: ApiObject): void {
  if (isObject(binding.roleRef)) binding.roleRef.apiGroup ||= rbac.group;
  if (!Array.isArray(binding.subjects)) return;
  for (const subject of binding.subjects) {
    if (isObject(subject) && subject.kind !== 'ServiceAccount') subject.apiGroup ||= rbac.group;
  }
}

export const rbacResources: ResourceType[] = [roles, clusterRoles, roleBindings, clusterRoleBindings];
