import type { ApiObject } from '../object.ts';
import type { VersionedStore } from '../store/versioned.ts';
import type { UserInfo } from '../types.ts';

/** Attributes of a request for authorization. */
export type Attributes =
  | {
      verb: string;
      group: string;
      version?: string;
      resource: string;
      subresource?: string | undefined;
      namespace?: string | undefined;
      name?: string | undefined;
    }
  | { verb: string; path: string };

export interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

export interface Decision {
  allowed: boolean;
  reason: string;
}

interface Subject {
  kind: 'User' | 'Group' | 'ServiceAccount';
  name: string;
  namespace?: string;
}

type Binding = ApiObject & { subjects?: Subject[]; roleRef: { kind: 'Role' | 'ClusterRole'; name: string } };
type Role = ApiObject & { rules?: Rule[] };

const storage = (plural: string) => `${plural}.rbac.authorization.k8s.io`;
/** `system:masters` is not subject to RBAC. */
const masters = 'system:masters';

/** Evaluates Roles and ClusterRoles as they are stored. */
export class Rbac {
  readonly #store: VersionedStore;

  constructor(store: VersionedStore) {
    this.#store = store;
  }

  authorize(user: UserInfo, attributes: Attributes): Decision {
    if (user.groups.includes(masters)) return { allowed: true, reason: '' };
    const namespace = 'path' in attributes ? undefined : attributes.namespace;
    for (const grant of this.#grants(user, namespace)) {
      if (grant.rules.some((rule) => covers(rule, attributes))) return { allowed: true, reason: grant.reason };
    }
    return { allowed: false, reason: '' };
  }

  /** Returns all rules of a user in a namespace, for SelfSubjectRulesReview. */
  rulesOf(user: UserInfo, namespace: string): Rule[] {
    if (user.groups.includes(masters)) {
      return [
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
        { verbs: ['*'], nonResourceURLs: ['*'] },
      ];
    }
    return [...this.#grants(user, namespace)].flatMap((grant) => grant.rules);
  }

  *#grants(user: UserInfo, namespace: string | undefined): Generator<{ rules: Rule[]; reason: string }> {
    for (const binding of this.#store.list(storage('clusterrolebindings')) as Binding[]) {
      const subject = binding.subjects?.find((s) => isSubject(user, s, ''));
      if (!subject) continue;
      yield { rules: this.#rules(binding, undefined), reason: reason('ClusterRoleBinding', binding, subject) };
    }
    if (!namespace) return;
    for (const binding of this.#store.list(storage('rolebindings'), namespace) as Binding[]) {
      const subject = binding.subjects?.find((s) => isSubject(user, s, namespace));
      if (!subject) continue;
      yield { rules: this.#rules(binding, namespace), reason: reason('RoleBinding', binding, subject) };
    }
  }

  #rules(binding: Binding, namespace: string | undefined): Rule[] {
    const { kind, name } = binding.roleRef;
    const role =
      kind === 'ClusterRole'
        ? this.#store.get(storage('clusterroles'), undefined, name)
        : this.#store.get(storage('roles'), namespace, name);
    return (role as Role | undefined)?.rules ?? [];
  }
}

function reason(kind: string, binding: Binding, subject: Subject): string {
  const { name, namespace } = binding.metadata;
  const bindingName = namespace ? `${name}/${namespace}` : name;
  const who = subject.kind === 'ServiceAccount' ? `${subject.name}/${subject.namespace ?? namespace}` : subject.name;
  return `RBAC: allowed by ${kind} "${bindingName}" of ${binding.roleRef.kind} "${binding.roleRef.name}" to ${subject.kind} "${who}"`;
}

function isSubject(user: UserInfo, subject: Subject, namespace: string): boolean {
  switch (subject.kind) {
    case 'User':
      return user.username === subject.name;
    case 'Group':
      return user.groups.includes(subject.name);
    case 'ServiceAccount':
      return user.username === `system:serviceaccount:${subject.namespace || namespace}:${subject.name}`;
  }
}

const includes = (list: string[] | undefined, value: string) => list?.some((v) => v === '*' || v === value) === true;

function covers(rule: Rule, attributes: Attributes): boolean {
  if (!includes(rule.verbs, attributes.verb)) return false;
  if ('path' in attributes) {
    return (
      rule.nonResourceURLs?.some(
        (url) =>
          url === '*' || url === attributes.path || (url.endsWith('*') && attributes.path.startsWith(url.slice(0, -1))),
      ) === true
    );
  }
  const { group, resource, subresource, name } = attributes;
  if (!includes(rule.apiGroups, group)) return false;
  const named = subresource ? `${resource}/${subresource}` : resource;
  if (!includes(rule.resources, named) && !(subresource && rule.resources?.includes(`*/${subresource}`))) return false;
  return !rule.resourceNames?.length || (name !== undefined && name !== '' && rule.resourceNames.includes(name));
}

/** Returns the reason of a denial in the API server's words. */
export function denial(user: UserInfo, attributes: Attributes): string {
  const who = `User ${JSON.stringify(user.username)} cannot ${attributes.verb}`;
  if ('path' in attributes) return `${who} path ${JSON.stringify(attributes.path)}`;
  const { group, resource, subresource, namespace } = attributes;
  const what = `resource ${JSON.stringify(subresource ? `${resource}/${subresource}` : resource)} in API group ${JSON.stringify(group)}`;
  return `${who} ${what} ${namespace ? `in the namespace ${JSON.stringify(namespace)}` : 'at the cluster scope'}`;
}
