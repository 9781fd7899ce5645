import { expressionErrors, type Place } from '../../admission/expressions.ts';
import type { MatchResources, Policy, PolicyBinding, ResourceRule, Validation } from '../../admission/types.ts';
import { type FieldError, forbiddenField, invalid, notSupported, required } from '../../fields.ts';
import { type ApiObject, at } from '../../object.ts';
import type { ResourceType } from '../types.ts';
import { ageColumn, builtin, fieldColumn, nameColumn } from './define.ts';
import { builtinSchema } from './schemas.ts';

const common = {
  group: 'admissionregistration.k8s.io',
  categories: ['api-extensions'],
  namespaced: false,
  generation: true,
};

const policies = builtin({
  ...common,
  plural: 'validatingadmissionpolicies',
  kind: 'ValidatingAdmissionPolicy',
  schema: builtinSchema('V1ValidatingAdmissionPolicy'),
  status: true,
  columns: [
    nameColumn,
    { name: 'Validations', type: 'integer', cell: ({ spec }) => listOf(at(spec, 'validations')).length },
    { name: 'ParamKind', type: 'string', cell: () => '<unset>' },
    ageColumn,
  ],
  prepareCreate(object) {
    delete object.status;
    setPolicyDefaults(object as Policy);
  },
  prepareUpdate(object, old) {
    if (old.status === undefined) delete object.status;
    else object.status = old.status;
    setPolicyDefaults(object as Policy);
  },
  validate: (object) => policyErrors(object as Policy),
});

const bindings = builtin({
  ...common,
  plural: 'validatingadmissionpolicybindings',
  kind: 'ValidatingAdmissionPolicyBinding',
  schema: builtinSchema('V1ValidatingAdmissionPolicyBinding'),
  columns: [
    nameColumn,
    fieldColumn('PolicyName', 'spec', 'policyName'),
    { name: 'ParamRef', type: 'string', cell: () => '<unset>' },
    ageColumn,
  ],
  prepareCreate: setBindingDefaults,
  prepareUpdate: setBindingDefaults,
  validate: (object) => bindingErrors(object as PolicyBinding),
});

export const admissionResources: ResourceType[] = [policies, bindings];

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function setPolicyDefaults({ spec }: Policy): void {
  if (!spec) return;
  spec.failurePolicy ??= 'Fail';
  setMatchDefaults(spec.matchConstraints);
}

function setBindingDefaults(object: ApiObject): void {
  setMatchDefaults((object as PolicyBinding).spec?.matchResources);
}

function setMatchDefaults(match: MatchResources | undefined): void {
  if (!match) return;
  match.matchPolicy ??= 'Equivalent';
  match.namespaceSelector ??= {};
  match.objectSelector ??= {};
  for (const rule of match.resourceRules ?? []) rule.scope ??= '*';
}

/** Fields of the Kubernetes API that change what is admitted and that this server does not implement. */
function missingErrors(spec: object, fields: string[], path: string): FieldError[] {
  return fields
    .filter((field) => at(spec, field) !== undefined)
    .map((field) => forbiddenField(`${path}.${field}`, 'the embedded cluster does not implement it; leave it out'));
}

const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

function policyErrors({ spec }: Policy): FieldError[] {
  const { failurePolicy, matchConstraints, matchConditions = [], variables = [], validations = [] } = spec ?? {};
  const errors = missingErrors(spec ?? {}, ['paramKind', 'auditAnnotations'], 'spec');
  if (failurePolicy && failurePolicy !== 'Fail' && failurePolicy !== 'Ignore') {
    errors.push(notSupported('spec.failurePolicy', failurePolicy, ['Fail', 'Ignore']));
  }
  if (!matchConstraints) errors.push(required('spec.matchConstraints'));
  else {
    errors.push(...matchErrors(matchConstraints, 'spec.matchConstraints'));
    if (!matchConstraints.resourceRules?.length) errors.push(required('spec.matchConstraints.resourceRules'));
  }
  matchConditions.forEach(({ name, expression }, i) => {
    const path = `spec.matchConditions[${i}]`;
    errors.push(...wantedExpression(expression, 'condition', 'bool', `${path}.expression`));
    if (!name) errors.push(required(`${path}.name`));
  });
  variables.forEach(({ name, expression }, i) => {
    const path = `spec.variables[${i}]`;
    if (!name) errors.push(required(`${path}.name`, 'name is not specified'));
    else if (!/^[_a-zA-Z]\w*$/.test(name)) errors.push(invalid(`${path}.name`, name, 'must be a valid CEL identifier'));
    errors.push(
      ...wantedExpression(expression, 'validation', 'dyn', `${path}.expression`, 'expression is not specified'),
    );
  });
  if (validations.length === 0) {
    errors.push(required('spec.validations', 'validations or auditAnnotations must contain at least one item'));
  }
  validations.forEach((validation, i) => {
    errors.push(...validationErrors(validation, `spec.validations[${i}]`));
  });
  return errors;
}

function validationErrors({ expression, message, messageExpression, reason }: Validation, path: string): FieldError[] {
  const errors = wantedExpression(
    expression,
    'validation',
    'bool',
    `${path}.expression`,
    'expression is not specified',
  );
  if (messageExpression) {
    errors.push(...wantedExpression(messageExpression, 'message', 'string', `${path}.messageExpression`));
  }
  if (message?.trim().includes('\n')) {
    errors.push(invalid(`${path}.message`, message, 'must not contain line breaks'));
  }
  if (reason !== undefined && !REASONS.includes(reason)) {
    errors.push(notSupported(`${path}.reason`, reason, REASONS));
  }
  return errors;
}

function wantedExpression(
  expression: string | undefined,
  place: Place,
  type: 'bool' | 'string' | 'dyn',
  path: string,
  missing?: string,
): FieldError[] {
  return expression?.trim() ? expressionErrors(expression, place, type, path) : [required(path, missing)];
}

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];

function matchErrors(match: MatchResources, path: string): FieldError[] {
  const errors = missingErrors(match, ['excludeResourceRules'], path);
  match.resourceRules?.forEach((rule, i) => {
    errors.push(...ruleErrors(rule, `${path}.resourceRules[${i}]`));
  });
  return errors;
}

function ruleErrors(rule: ResourceRule, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['operations', 'apiGroups', 'apiVersions', 'resources'] as const) {
    if (!rule[field]?.length) errors.push(required(`${path}.${field}`));
  }
  rule.operations?.forEach((operation, i) => {
    if (!OPERATIONS.includes(operation)) {
      errors.push(notSupported(`${path}.operations[${i}]`, operation, OPERATIONS));
    }
  });
  return errors;
}

function bindingErrors({ spec }: PolicyBinding): FieldError[] {
  const errors = missingErrors(spec ?? {}, ['paramRef'], 'spec');
  if (!spec?.policyName) errors.push(required('spec.policyName'));
  if (spec?.matchResources) errors.push(...matchErrors(spec.matchResources, 'spec.matchResources'));
  const actions = spec?.validationActions ?? [];
  if (actions.length === 0)
    errors.push(required('spec.validationActions', 'at least one validation action is required'));
  // The others, Warn and Audit, admit the request: there is no audit log here.
  actions.forEach((action, i) => {
    if (action !== 'Deny') errors.push(notSupported(`spec.validationActions[${i}]`, action, ['Deny']));
  });
  return errors;
}
