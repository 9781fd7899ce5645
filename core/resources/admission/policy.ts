import { API_GROUP } from '../names.ts';

/** Shapes of ValidatingAdmissionPolicies, and the parts of their expressions. */

export interface Validation {
  expression: string;
  message: string;
  messageExpression?: string;
}

/** A named expression that others use as `variables.NAME`. */
export interface Variable {
  name: string;
  expression: string;
}

export interface PolicyParts {
  description: string;
  resourceRules: object[];
  matchConditions?: object[];
  variables?: Variable[];
  validations: Validation[];
}

export function rule(apiGroup: string, operations: string[], ...resources: string[]): object {
  return { apiGroups: [apiGroup], apiVersions: [apiGroup === '' ? 'v1' : '*'], operations, resources, scope: '*' };
}

/** Limits validations to some operations, because each validation of a policy sees all of its requests. */
export function on(operations: string[], ...validations: Validation[]): Validation[] {
  const list = operations.map((operation) => `'${operation}'`).join(', ');
  return validations.map(({ expression, ...rest }) => ({
    expression: `!(request.operation in [${list}]) || (
${expression.replaceAll(/^/gm, '  ')}
)`,
    ...rest,
  }));
}

/** Patterns of `podName` and `poolPodName`: a UID of Kubernetes is a UUID. */
export const POD_NAME = "'^(s-[0-9a-f-]{36}-[0-9]+|p-[0-9a-f-]{36}-[0-9]+)$'";

/** Owner references as a list, whether the object has any or not. */
export const owners = (object: string) => `${object}.metadata.?ownerReferences.orValue([])`;

/**
 * Condition that a part of an object keeps all of its fields on an update, except those for whose name `isFree` holds, where
 * the name is `k`. `part` is a path below the object. The types of the fields need not be known: `dyn` makes maps of objects.
 */
export function keeps(part: string, isFree: string): string {
  const [now, before] = ['object', 'oldObject'].map((of) => `dyn(${of}.${part})`) as [string, string];
  return `${now}.all(k, ${isFree} || (k in ${before} && ${now}[k] == ${before}[k])) &&
${before}.all(k, ${isFree} || k in ${now})`;
}

/** Condition that a map or list of the metadata is as it was on an update. */
export const keepsMetadata = (field: string, empty: '{}' | '[]') =>
  `object.metadata.?${field}.orValue(${empty}) == oldObject.metadata.?${field}.orValue(${empty})`;

/** Condition that an Event is one of a component of Berth about an object of Berth. */
export const isEventOf = (object: string, component: string) =>
  `dyn(${object}).?source.?component.orValue('') == '${component}' &&
dyn(${object}).?involvedObject.?apiVersion.orValue('').startsWith('${API_GROUP}/')`;

/** Defaults of the API server. They are written out, so that tools see no difference between an object and its manifest. */
const EVERYWHERE = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

/** Returns a policy, which refuses what its expressions cannot judge, and its binding, which puts it in force. */
export function policy(name: string, parts: PolicyParts): object[] {
  const { description, resourceRules, matchConditions, variables, validations } = parts;
  const apiVersion = 'admissionregistration.k8s.io/v1';
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name, annotations: { 'kubernetes.io/description': description } },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { ...EVERYWHERE, resourceRules },
        ...(matchConditions ? { matchConditions } : {}),
        ...(variables ? { variables } : {}),
        validations: validations.map((validation) => ({ ...validation, reason: 'Forbidden' })),
      },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}
