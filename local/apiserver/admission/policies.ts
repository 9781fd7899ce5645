import type { Rbac } from '../auth/rbac.ts';
import { failure } from '../errors.ts';
import { at } from '../object.ts';
import type { VersionedStore } from '../store/versioned.ts';
import { isOfNamespace, matches } from './matching.ts';
import { type Denial, denialOf } from './policy.ts';
import type { AdmissionRequest } from './request.ts';
import { bindingStorage, type Policy, type PolicyBinding, policyStorage } from './types.ts';

/** Status codes of the reasons that a validation may give. */
const CODES: Record<string, number> = { Forbidden: 403, RequestEntityTooLarge: 413, Unauthorized: 401 };

/** Applies the ValidatingAdmissionPolicies as they are stored. A new one is in force at once. */
export class AdmissionPolicies {
  readonly #store: VersionedStore;
  readonly #rbac: Rbac;

  constructor(store: VersionedStore, rbac: Rbac) {
    this.#store = store;
    this.#rbac = rbac;
  }

  /** Throws the refusal of the first policy that denies the request. */
  validate(request: AdmissionRequest): void {
    // Policies do not apply to policies: a wrong one could not be removed any more.
    if (request.resource.group === 'admissionregistration.k8s.io') return;
    const { namespace: name } = request;
    const namespace = name && !isOfNamespace(request) ? this.#store.get('namespaces', undefined, name) : undefined;
    for (const policy of this.#store.list(policyStorage) as Policy[]) {
      if (!matches(policy.spec.matchConstraints ?? {}, request, namespace)) continue;
      const binding = (this.#store.list(bindingStorage) as PolicyBinding[]).find(
        ({ spec }) =>
          spec.policyName === policy.metadata.name && matches(spec.matchResources ?? {}, request, namespace),
      );
      const denial = binding && denialOf(policy, request, namespace, this.#rbac);
      if (denial) throw refusal(request, policy, binding, denial);
    }
  }
}

/** Makes the API server's answer to a denied request. */
function refusal(request: AdmissionRequest, policy: Policy, binding: PolicyBinding, { message, reason }: Denial) {
  const { resource, object } = request;
  const plain = resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`;
  const name = request.name || at(object, 'metadata', 'name') || at(object, 'metadata', 'generateName') || 'Unknown';
  const denied = `ValidatingAdmissionPolicy '${policy.metadata.name}' with binding '${binding.metadata.name}' denied request: ${message}`;
  return failure(CODES[reason] ?? 422, reason, `${plain} ${JSON.stringify(name)} is forbidden: ${denied}`, {
    name: String(name),
    group: resource.group,
    kind: resource.resource,
    causes: [{ message: denied }],
  });
}
