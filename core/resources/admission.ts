import { exec } from './admission/api-account.ts';
import { attach, claims, networkPolicies, pods } from './admission/controller-account.ts';
import { type PodExceptions, podVariables } from './admission/pod-content.ts';
import { on, policy, rule, type Validation } from './admission/policy.ts';
import { API_GROUP } from './names.ts';

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
