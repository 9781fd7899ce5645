import { HELPER_PATH } from '../enter/hello.ts';
import { API_GROUP, CONTAINER, LABEL_MANAGED_BY, LABEL_NETWORK, MANAGED_BY } from './names.ts';

/** Builds the ValidatingAdmissionPolicies of an installation. */

/**
 * Verb of RBAC on sessions, turns and approvals. Its holder may create them with another user as requester. The API
 * server knows no such request; only the policy asks for the verb.
 */
const VERB_SET_REQUESTER = 'setrequester';

export interface PolicyOptions {
  /** Returns the name of a policy and its binding; `of` is different for each. */
  nameOf(of: string): string;
  /** User names of the service accounts of the controller and of the HTTP API. */
  controller: string;
  api: string;
}

interface Validation {
  expression: string;
  message: string;
  messageExpression?: string;
}

/** Returns the policies, each followed by its binding. */
export function admissionPolicies({ nameOf, controller, api }: PolicyOptions): object[] {
  const by = (name: string, user: string) => [{ name, expression: `request.userInfo.username == '${user}'` }];
  const ofController = by('controller', controller);
  const core = (operations: string[], resource: string) => rule('', 'v1', operations, [resource]);
  return [
    ...policy(nameOf('requester'), {
      description: `Keeps spec.requester true: it is absent, names the author, or the author holds the verb ${VERB_SET_REQUESTER}.`,
      resourceRules: [rule(API_GROUP, '*', ['CREATE'], ['sessions', 'turns', 'approvals'])],
      validations: [requester],
    }),
    ...policy(nameOf('controller-pods'), {
      description: 'Holds the service account of the controller to pods of Sessions and SessionPools.',
      resourceRules: [core(['CREATE', 'UPDATE', 'DELETE'], 'pods'), core(['CONNECT'], 'pods/attach')],
      matchConditions: ofController,
      validations: pods,
    }),
    ...policy(nameOf('controller-claims'), {
      description: 'Holds the service account of the controller to volumes of Sessions.',
      resourceRules: [core(['CREATE'], 'persistentvolumeclaims')],
      matchConditions: ofController,
      validations: [claim],
    }),
    ...policy(nameOf('controller-networkpolicies'), {
      description: 'Holds the service account of the controller to NetworkPolicies for pods of Sessions.',
      resourceRules: [rule('networking.k8s.io', 'v1', ['CREATE', 'UPDATE', 'DELETE'], ['networkpolicies'])],
      matchConditions: ofController,
      validations: networkPolicies,
    }),
    ...policy(nameOf('api-exec'), {
      description: 'Holds the service account of the HTTP API to the helper of Berth in pods of Sessions.',
      resourceRules: [core(['CONNECT'], 'pods/exec')],
      matchConditions: by('api', api),
      validations: exec,
    }),
  ];
}

const requester: Validation = {
  expression: `!has(object.spec.requester) ||
object.spec.requester == request.userInfo.username ||
authorizer.group('${API_GROUP}').resource(request.resource.resource).namespace(request.namespace)
  .check('${VERB_SET_REQUESTER}').allowed()`,
  messageExpression: `'spec.requester is "' + object.spec.requester + '", and you are "' + request.userInfo.username +
'"; leave it out or name yourself. To name others you need the verb ${VERB_SET_REQUESTER} on ' +
request.resource.resource + '.${API_GROUP} in namespace ' + request.namespace`,
  message: `spec.requester names another user; leave it out or name yourself. To name others you need the verb ${VERB_SET_REQUESTER}`,
};

/** Owner references as a list, whether the object has any or not. */
const owners = (object: string) => `${object}.metadata.?ownerReferences.orValue([])`;
const isController = 'o.?controller.orValue(false)';
const isSession = `o.kind == 'Session' && o.apiVersion.startsWith('${API_GROUP}/')`;

/** Patterns of `podName` and `poolPodName`: a UID of Kubernetes is a UUID. */
const POD_NAME = "'^(s-[0-9a-f-]{36}-[0-9]+|p-[0-9a-f-]{36}-[0-9]+)$'";
const isPool = `o.kind == 'SessionPool' && o.apiVersion.startsWith('${API_GROUP}/')`;
const isPodOf = (object: string) => `${object}.metadata.name.matches('^s-' + o.uid + '-[0-9]+$')`;
const isPodOfPool = (object: string) => `${object}.metadata.name.matches('^p-' + o.uid + '-[0-9]+$')`;
const isFromPool = (object: string) => `${object}.metadata.name.startsWith('p-')`;

/**
 * An existing pod is judged by name and owner as they are stored, because its labels are what the controller repairs. A
 * pod that lost its owner references is still the controller's. A session that claims a pod of a pool becomes its owner.
 */
const pods: Validation[] = [
  on(['CREATE'], {
    expression: `${owners('object')}.exists(o, ${isController} && (
  (${isSession} && ${isPodOf('object')}) ||
  (${isPool} && ${isPodOfPool('object')})))`,
    message:
      'the controller of Berth creates only pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER by the UID of their owner',
  }),
  on(['UPDATE', 'DELETE'], {
    expression: `oldObject.metadata.name.matches(${POD_NAME}) &&
${owners('oldObject')}.all(o, !${isController} || (
  (${isSession} && (${isPodOf('oldObject')} || ${isFromPool('oldObject')})) ||
  (${isPool} && ${isPodOfPool('oldObject')})))`,
    message:
      'the controller of Berth changes and deletes only pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER, and with no other controller than these; delete this pod yourself',
  }),
  on(['CONNECT'], {
    expression: `request.name.matches(${POD_NAME})`,
    message:
      'the controller of Berth attaches only to pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER',
  }),
];

const claim: Validation = {
  expression: `${owners('object')}.exists(o, ${isController} &&
  ${isSession} &&
  object.metadata.name == 'w-' + o.uid)`,
  message:
    'the controller of Berth creates only the volumes of Sessions: named w-UID by the UID of the Session that owns them',
};

const networkPolicies: Validation[] = [
  on(['CREATE', 'UPDATE'], {
    expression: `object.metadata.name == 'berth-' +
object.spec.podSelector.?matchLabels[?'${LABEL_NETWORK}'].orValue('')`,
    message: `the controller of Berth writes only NetworkPolicies for pods with the label ${LABEL_NETWORK}: named berth-VALUE by its value`,
  }),
  on(['UPDATE', 'DELETE'], {
    expression: `oldObject.metadata.?labels[?'${LABEL_MANAGED_BY}'].orValue('') == '${MANAGED_BY}' &&
oldObject.metadata.name == 'berth-' + oldObject.metadata.?labels[?'${LABEL_NETWORK}'].orValue('')`,
    message: `the controller of Berth changes and deletes only NetworkPolicies with the labels that it gave them: ${LABEL_MANAGED_BY} and ${LABEL_NETWORK}; delete this one yourself`,
  }),
];

/** The API server shows the options of an exec alone, and neither the pod nor its labels. */
const exec: Validation[] = [
  {
    expression: `request.name.matches(${POD_NAME})`,
    message: 'the HTTP API of Berth enters only pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER',
  },
  {
    expression: `object.?container.orValue('') == '${CONTAINER}' &&
object.?command.orValue([]) == ['${HELPER_PATH}'] &&
!object.?tty.orValue(false)`,
    message: `the HTTP API of Berth runs only ${HELPER_PATH}, without arguments and without a terminal, in the container ${CONTAINER}`,
  },
];

/** Limits a validation to some operations, because each validation of a policy sees all of its requests. */
function on(operations: string[], { expression, message }: Validation): Validation {
  const list = operations.map((operation) => `'${operation}'`).join(', ');
  return {
    expression: `!(request.operation in [${list}]) || (
${expression.replaceAll(/^/gm, '  ')}
)`,
    message,
  };
}

function rule(apiGroup: string, apiVersion: string, operations: string[], resources: string[]): object {
  return { apiGroups: [apiGroup], apiVersions: [apiVersion], operations, resources, scope: '*' };
}

interface PolicyParts {
  description: string;
  resourceRules: object[];
  matchConditions?: object[];
  validations: Validation[];
}

/** Defaults of the API server. They are written out, so that tools see no difference between an object and its manifest. */
const EVERYWHERE = { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} };

/** Returns a policy, which refuses what its expressions cannot judge, and its binding, which puts it in force. */
function policy(name: string, { description, resourceRules, matchConditions, validations }: PolicyParts): object[] {
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
