import { selects } from '../../../core/resources/label-selector.ts';
import type { LabelSelector } from '../../../core/resources/schema.ts';
import { type ApiObject, at, isObject, type Json } from '../object.ts';
import type { AdmissionRequest } from './request.ts';
import type { MatchResources, ResourceRule } from './types.ts';

/** Reports whether the request is about a Namespace, which a namespaceSelector selects by its own labels. */
export const isOfNamespace = ({ resource }: AdmissionRequest) =>
  resource.group === '' && resource.resource === 'namespaces';

/**
 * Reports whether a request is one of those that `matchConstraints` or `matchResources` names. Without rules, as a
 * binding may be, every resource matches. `namespace` is the request's Namespace, absent for cluster-scoped resources.
 */
export function matches(match: MatchResources, request: AdmissionRequest, namespace: ApiObject | undefined): boolean {
  const { resourceRules = [], namespaceSelector = {}, objectSelector = {} } = match;
  if (resourceRules.length > 0 && !resourceRules.some((rule) => ruleMatches(rule, request))) return false;
  const within = isOfNamespace(request) ? (request.object ?? request.oldObject) : namespace;
  if (within && !selects(namespaceSelector, labelsOf(within))) return false;
  if (isEmpty(objectSelector)) return true;
  return [request.object, request.oldObject].some((object) => object && selects(objectSelector, labelsOf(object)));
}

const includes = (list: string[] | undefined, value: string) => list?.some((v) => v === '*' || v === value) === true;

function ruleMatches(rule: ResourceRule, request: AdmissionRequest): boolean {
  const { operation, resource, subresource, namespace, name } = request;
  const { scope = '*', resourceNames = [] } = rule;
  const isCluster = namespace === undefined || isOfNamespace(request);
  return (
    (scope === '*' || (scope === 'Cluster') === isCluster) &&
    includes(rule.operations, operation) &&
    includes(rule.apiGroups, resource.group) &&
    includes(rule.apiVersions, resource.version) &&
    rule.resources?.some((each) => resourceMatches(each, resource.resource, subresource ?? '')) === true &&
    (resourceNames.length === 0 || resourceNames.includes(name ?? ''))
  );
}

/** `pods` is the resource alone, `pods/*` also all its subresources. */
function resourceMatches(rule: string, resource: string, subresource: string): boolean {
  const [wanted, below = ''] = rule.split('/');
  return (wanted === '*' || wanted === resource) && (below === '*' || below === subresource);
}

const labelsOf = (object: Json | ApiObject) => {
  const labels = at(object, 'metadata', 'labels');
  return (isObject(labels) ? labels : {}) as Record<string, string>;
};

const isEmpty = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector) =>
  Object.keys(matchLabels).length + matchExpressions.length === 0;
