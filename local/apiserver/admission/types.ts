import type { LabelSelector } from '../../../core/resources/schema.ts';
import type { ApiObject } from '../object.ts';

export interface ResourceRule {
  operations?: string[];
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  resourceNames?: string[];
  scope?: '*' | 'Cluster' | 'Namespaced';
}

export interface MatchResources {
  resourceRules?: ResourceRule[];
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  matchPolicy?: 'Equivalent' | 'Exact';
}

export interface Validation {
  expression?: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
}

export interface NamedExpression {
  name?: string;
  expression?: string;
}

/** A ValidatingAdmissionPolicy, as far as this server implements it. */
export type Policy = ApiObject & {
  spec: {
    failurePolicy?: 'Fail' | 'Ignore';
    matchConstraints?: MatchResources;
    matchConditions?: NamedExpression[];
    variables?: NamedExpression[];
    validations?: Validation[];
  };
};

export type PolicyBinding = ApiObject & {
  spec: { policyName?: string; matchResources?: MatchResources; validationActions?: string[] };
};

export const policyStorage = 'validatingadmissionpolicies.admissionregistration.k8s.io';
export const bindingStorage = 'validatingadmissionpolicybindings.admissionregistration.k8s.io';
