import { HELPER_PATH } from '../enter/hello.ts';
import { type PodExceptions, podContent, podVariables } from './admission/pod-content.ts';
import { keeps, keepsMetadata, on, owners, policy, rule, type Validation } from './admission/policy.ts';
import { API_GROUP, CONTAINER, LABEL_MANAGED_BY, LABEL_NETWORK, MANAGED_BY } from './names.ts';

/** Builds the ValidatingAdmissionPolicies of an installation. */

/**
 * Verb of RBAC on sessions, turns and approvals. Its holder may create them with another user as requester. The API
 * server knows no such request; only the policy asks for the verb.
 */
const VERB_SET_REQUESTER = 'setrequester';

export interface PolicyOptions extends PodExceptions {
  /** Returns the name of a policy and its binding; `of` is different for each. */
  nameOf(of: string): string;
  /** Namespace of the programs. */
  namespace: string;
  /** User names of the service accounts of the controller and of the HTTP API. */
  controller: string;
  api: string;
}

/** Returns the policies, each followed by its binding. */
export function admissionPolicies({ nameOf, namespace, controller, api, ...exceptions }: PolicyOptions): object[] {
  const by = (name: string, user: string) => [{ name, expression: `request.userInfo.username == '${user}'` }];
  const ofController = by('controller', controller);
  const outside = outsideOf(namespace);
  return [
    ...policy(nameOf('requester'), {
      description: `Keeps spec.requester true: it is absent, names the author, or the author holds the verb ${VERB_SET_REQUESTER}.`,
      resourceRules: [rule(API_GROUP, ['CREATE'], 'sessions', 'turns', 'approvals')],
      validations: [requester],
    }),
    ...policy(nameOf('controller-pods'), {
      description:
        'Holds the service account of the controller to pods of Sessions and SessionPools that satisfy the restricted Pod Security Standard.',
      resourceRules: [rule('', ['CREATE', 'UPDATE', 'DELETE'], 'pods')],
      matchConditions: ofController,
      variables: podVariables(exceptions),
      validations: [...on(['CREATE', 'UPDATE'], outside), ...pods],
    }),
    ...policy(nameOf('controller-attaches'), {
      description: 'Holds the service account of the controller to attaches to pods of Sessions and SessionPools.',
      resourceRules: [rule('', ['CONNECT'], 'pods/attach')],
      matchConditions: ofController,
      validations: [outside, attach],
    }),
    ...policy(nameOf('controller-claims'), {
      description: 'Holds the service account of the controller to empty volumes of Sessions.',
      resourceRules: [rule('', ['CREATE'], 'persistentvolumeclaims')],
      matchConditions: ofController,
      validations: [outside, ...claims],
    }),
    ...policy(nameOf('controller-networkpolicies'), {
      description: 'Holds the service account of the controller to NetworkPolicies for pods of Sessions.',
      resourceRules: [rule('networking.k8s.io', ['CREATE', 'UPDATE', 'DELETE'], 'networkpolicies')],
      matchConditions: ofController,
      validations: [...on(['CREATE', 'UPDATE'], outside), ...networkPolicies],
    }),
    ...policy(nameOf('api-exec'), {
      description: 'Holds the service account of the HTTP API to the helper of Berth in pods of Sessions.',
      resourceRules: [rule('', ['CONNECT'], 'pods/exec')],
      matchConditions: by('api', api),
      validations: exec,
    }),
  ];
}

/**
 * Keeps an account out of the namespaces of the cluster and of Berth itself, where it would find the service accounts and Secrets that
 * are worth most. A selector in the policy would do the opposite: what it leaves out is not judged. Deletions are free, so that
 * what an earlier release has made there can go.
 */
function outsideOf(namespace: string): Validation {
  return {
    expression: `!request.namespace.startsWith('kube-') && request.namespace != '${namespace}'`,
    message: 'Berth runs no sessions in the namespaces kube-* and in its own; create the session in another namespace',
    messageExpression:
      "'Berth runs no sessions in namespace ' + request.namespace + ', nor in any of kube-* or its own; create the session in another namespace'",
  };
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
  ...on(
    ['CREATE'],
    {
      expression: `size(${owners('object')}) == 1 && ${owners('object')}.all(o, ${isController} && (
  (${isSession} && ${isPodOf('object')}) ||
  (${isPool} && ${isPodOfPool('object')})))`,
      message:
        'the controller of Berth creates only pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER by the UID of their owner',
    },
    ...podContent,
  ),
  ...on(['UPDATE', 'DELETE'], {
    expression: `oldObject.metadata.name.matches(${POD_NAME}) &&
${owners('oldObject')}.all(o, !${isController} || (
  (${isSession} && (${isPodOf('oldObject')} || ${isFromPool('oldObject')})) ||
  (${isPool} && ${isPodOfPool('oldObject')})))`,
    message:
      'the controller of Berth changes and deletes only pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER, and with no other controller than these; delete this pod yourself',
  }),
  // A pod without a runner waits behind a gate until its turn is written.
  ...on(
    ['UPDATE'],
    {
      expression: `${keeps('spec', "k == 'schedulingGates'")} &&
${keeps('metadata.?labels.orValue({})', `k.startsWith('${API_GROUP}/') || k == '${LABEL_MANAGED_BY}'`)} &&
${keepsMetadata('annotations', '{}')} &&
${keepsMetadata('finalizers', '[]')}`,
      message:
        'the controller of Berth changes nothing of a pod but its own labels, its owner and its scheduling gates: somebody else uses the account of the controller',
    },
    {
      expression: `${owners('object')}.all(o, ${isSession} || ${isPool} || o in ${owners('oldObject')})`,
      message: 'the controller of Berth gives pods no other owners than Sessions and SessionPools',
    },
  ),
];

const attach: Validation = {
  expression: `request.name.matches(${POD_NAME})`,
  message:
    'the controller of Berth attaches only to pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER',
};

const claims: Validation[] = [
  {
    expression: `size(${owners('object')}) == 1 && ${owners('object')}.all(o, ${isController} &&
  ${isSession} &&
  object.metadata.name == 'w-' + o.uid)`,
    message:
      'the controller of Berth creates only the volumes of Sessions: named w-UID by the UID of the Session that owns them',
  },
  {
    expression: `!has(object.spec.dataSource) && !has(object.spec.dataSourceRef) && !has(object.spec.selector) &&
object.spec.?volumeName.orValue('') == '' &&
object.spec.?volumeMode.orValue('Filesystem') == 'Filesystem'`,
    message:
      'the controller of Berth creates only empty volumes: without volumeName, selector, dataSource and dataSourceRef, in volumeMode Filesystem',
  },
];

const networkPolicies: Validation[] = [
  ...on(
    ['CREATE', 'UPDATE'],
    {
      expression: `object.metadata.name == 'berth-' +
object.spec.podSelector.?matchLabels[?'${LABEL_NETWORK}'].orValue('')`,
      message: `the controller of Berth writes only NetworkPolicies for pods with the label ${LABEL_NETWORK}: named berth-VALUE by its value`,
    },
    {
      expression: `size(object.spec.?ingress.orValue([])) == 0 &&
['Ingress', 'Egress'].all(t, t in object.spec.?policyTypes.orValue([]))`,
      message:
        'the controller of Berth writes only NetworkPolicies that allow no ingress: of the types Ingress and Egress, and without rules for ingress',
    },
  ),
  ...on(['UPDATE', 'DELETE'], {
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
