import type { Environment } from '@marcbachmann/cel-js';
import type { Decision, Rbac } from '../auth/rbac.ts';
import type { UserInfo } from '../types.ts';

/** Value of the CEL variable `authorizer`: the rights of the user who makes the request. */
export class Authorizer {
  readonly rbac: Rbac;
  readonly user: UserInfo;

  constructor(rbac: Rbac, user: UserInfo) {
    this.rbac = rbac;
    this.user = user;
  }
}

class GroupCheck {
  readonly authorizer: Authorizer;
  readonly group: string;

  constructor(authorizer: Authorizer, group: string) {
    this.authorizer = authorizer;
    this.group = group;
  }
}

interface Checked {
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

class ResourceCheck {
  readonly authorizer: Authorizer;
  readonly checked: Checked;

  constructor(authorizer: Authorizer, checked: Checked) {
    this.authorizer = authorizer;
    this.checked = checked;
  }

  with(more: Partial<Checked>): ResourceCheck {
    return new ResourceCheck(this.authorizer, { ...this.checked, ...more });
  }
}

class Verdict {
  readonly decision: Decision;

  constructor(decision: Decision) {
    this.decision = decision;
  }
}

/** Registers the types of `authorizer` with their functions, by the names of Kubernetes' CEL library. */
export function registerAuthorizer(environment: Environment): Environment {
  return environment
    .registerType('Authorizer', Authorizer)
    .registerType('GroupCheck', GroupCheck)
    .registerType('ResourceCheck', ResourceCheck)
    .registerType('Decision', Verdict)
    .registerFunction('Authorizer.group(string): GroupCheck', (of: Authorizer, group: string) => {
      return new GroupCheck(of, group);
    })
    .registerFunction('GroupCheck.resource(string): ResourceCheck', (of: GroupCheck, resource: string) => {
      if (resource.trim() === '') throw new Error('resource must not be empty');
      return new ResourceCheck(of.authorizer, { group: of.group, resource });
    })
    .registerFunction('ResourceCheck.subresource(string): ResourceCheck', (of: ResourceCheck, subresource: string) =>
      of.with({ subresource }),
    )
    .registerFunction('ResourceCheck.namespace(string): ResourceCheck', (of: ResourceCheck, namespace: string) =>
      of.with({ namespace }),
    )
    .registerFunction('ResourceCheck.name(string): ResourceCheck', (of: ResourceCheck, name: string) =>
      of.with({ name }),
    )
    .registerFunction(
      'ResourceCheck.check(string): Decision',
      ({ authorizer, checked }: ResourceCheck, verb: string) => {
        return new Verdict(authorizer.rbac.authorize(authorizer.user, { verb, ...checked }));
      },
    )
    .registerFunction('Decision.allowed(): bool', ({ decision }: Verdict) => decision.allowed)
    .registerFunction('Decision.reason(): string', ({ decision }: Verdict) => decision.reason);
}
