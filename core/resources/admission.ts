import * as ofApi from './admission/api-account.ts';
import * as ofController from './admission/controller-account.ts';
import { type PodExceptions, podVariables } from './admission/pod-content.ts';
import { on, type PolicyParts, policy, rule, type Validation } from './admission/policy.ts';
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
  /** Names of the controller's Secret and Lease in that namespace. */
  masterKey: string;
  lease: string;
}

/** Returns the policies, each followed by its binding. */
export function admissionPolicies(options: PolicyOptions): object[] {
  const { nameOf } = options;
  return [
    ...policy(nameOf('requester'), {
      description: `Keeps spec.requester true: it is absent, names the author, or the author holds the verb ${VERB_SET_REQUESTER}.`,
      resourceRules: [rule(API_GROUP, ['CREATE'], 'sessions', 'turns', 'approvals')],
      validations: [requester],
    }),
    ...controllerPolicies(options),
    ...apiPolicies(options),
  ];
}

/** A policy on an account; `what` tells it by its name from the others. */
type OfAccount = PolicyParts & { what: string };

/** Returns the policies that hold for requests of one user. */
function policiesOf(user: string, nameOf: PolicyOptions['nameOf'], of: 'controller' | 'api', parts: OfAccount[]) {
  const matchConditions = [{ name: of, expression: `request.userInfo.username == '${user}'` }];
  return parts.flatMap(({ what, ...rest }) => policy(nameOf(`${of}-${what}`), { ...rest, matchConditions }));
}

function controllerPolicies({
  nameOf,
  namespace,
  controller,
  masterKey,
  lease,
  ...exceptions
}: PolicyOptions): object[] {
  const outside = outsideOf(namespace);
  const to = (what: string) => `Holds the service account of the controller to ${what}.`;
  return policiesOf(controller, nameOf, 'controller', [
    {
      what: 'pods',
      description: to('pods of Sessions and SessionPools that satisfy the restricted Pod Security Standard'),
      resourceRules: [rule('', ['CREATE', 'UPDATE', 'DELETE'], 'pods')],
      variables: podVariables(exceptions),
      validations: [...on(['CREATE', 'UPDATE'], outside), ...ofController.pods],
    },
    {
      what: 'attaches',
      description: to('attaches to pods of Sessions and SessionPools'),
      resourceRules: [rule('', ['CONNECT'], 'pods/attach')],
      validations: [outside, ofController.attach],
    },
    {
      what: 'claims',
      description: to('empty volumes of Sessions'),
      resourceRules: [rule('', ['CREATE'], 'persistentvolumeclaims')],
      validations: [outside, ...ofController.claims],
    },
    {
      what: 'networkpolicies',
      description: to('NetworkPolicies for pods of Sessions'),
      resourceRules: [rule('networking.k8s.io', ['CREATE', 'UPDATE', 'DELETE'], 'networkpolicies')],
      validations: [...on(['CREATE', 'UPDATE'], outside), ...ofController.networkPolicies],
    },
    {
      what: 'secrets',
      description: to('the Secret with the master key'),
      resourceRules: [rule('', ['CREATE'], 'secrets')],
      validations: [ofController.secretNamed(masterKey)],
    },
    {
      what: 'leases',
      description: to('its own Lease'),
      resourceRules: [rule('coordination.k8s.io', ['CREATE'], 'leases')],
      validations: [ofController.leaseNamed(lease)],
    },
    {
      what: 'sessions',
      description: to('Sessions that build Environments'),
      resourceRules: [rule(API_GROUP, ['CREATE'], 'sessions')],
      validations: [outside, ofController.builds],
    },
    {
      what: 'turns',
      description: to('the Turn of a Session’s input, and to the owners of others'),
      resourceRules: [rule(API_GROUP, ['CREATE', 'UPDATE'], 'turns')],
      validations: ofController.turns,
    },
    {
      what: 'approvals',
      description: to('the owners of Approvals'),
      resourceRules: [rule(API_GROUP, ['UPDATE'], 'approvals')],
      validations: [ofController.approvals],
    },
    {
      what: 'events',
      description: to('Events about objects of Berth'),
      resourceRules: [rule('', ['CREATE', 'UPDATE'], 'events')],
      validations: ofController.events,
    },
  ]);
}

function apiPolicies({ nameOf, namespace, api }: PolicyOptions): object[] {
  const to = (what: string) => `Holds the service account of the HTTP API to ${what}.`;
  return policiesOf(api, nameOf, 'api', [
    {
      what: 'exec',
      description: to('the helper of Berth in pods of Sessions'),
      resourceRules: [rule('', ['CONNECT'], 'pods/exec')],
      validations: [...ofApi.exec, outsideOf(namespace)],
    },
    {
      what: 'requesters',
      description: to('objects that name its caller'),
      resourceRules: [rule(API_GROUP, ['CREATE'], 'sessions', 'turns', 'approvals')],
      validations: [ofApi.requesters],
    },
    {
      what: 'changes',
      description: to('the changes of Sessions and Turns that its clients ask for'),
      resourceRules: [rule(API_GROUP, ['UPDATE'], 'sessions', 'turns')],
      validations: [ofApi.changes],
    },
    {
      what: 'events',
      description: to('the Events of Idempotency-Keys'),
      resourceRules: [rule('', ['CREATE'], 'events')],
      validations: [ofApi.events],
    },
  ]);
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
