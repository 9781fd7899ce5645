import { API_GROUP, LABEL_MANAGED_BY, LABEL_NETWORK, MANAGED_BY, MASTER_KEY_TYPE } from '../names.ts';
import { podContent } from './pod-content.ts';
import { isEventOf, keeps, keepsMetadata, on, owners, POD_NAME, type Validation } from './policy.ts';

/** What the service account of the controller may do, by kind of object. */

const isController = 'o.?controller.orValue(false)';
const isSession = `o.kind == 'Session' && o.apiVersion.startsWith('${API_GROUP}/')`;

const isPool = `o.kind == 'SessionPool' && o.apiVersion.startsWith('${API_GROUP}/')`;
// An owner's UID is what the author of the object says: a pattern made of it could match any name.
const isPodOf = (object: string) => `${object}.metadata.name.startsWith('s-' + o.uid + '-')`;
const isPodOfPool = (object: string) => `${object}.metadata.name.startsWith('p-' + o.uid + '-')`;
const isFromPool = (object: string) => `${object}.metadata.name.startsWith('p-')`;

/**
 * An existing pod is judged by name and owner as they are stored, because its labels are what the controller repairs. A
 * pod that lost its owner references is still the controller's. A session that claims a pod of a pool becomes its owner.
 */
export const pods: Validation[] = [
  ...on(
    ['CREATE'],
    {
      expression: `object.metadata.name.matches(${POD_NAME}) &&
size(${owners('object')}) == 1 && ${owners('object')}.all(o, ${isController} && (
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
        'the controller of Berth changes nothing of a pod but its own labels, its owner and its scheduling gates. Either a webhook has changed more, which has to leave updates of session pods alone, or somebody else uses the account of the controller',
    },
    {
      expression: `${owners('object')}.all(o, ${isSession} || ${isPool} || o in ${owners('oldObject')})`,
      message: 'the controller of Berth gives pods no other owners than Sessions and SessionPools',
    },
  ),
];

export const attach: Validation = {
  expression: `request.name.matches(${POD_NAME})`,
  message:
    'the controller of Berth attaches only to pods of Sessions and SessionPools: named s-UID-NUMBER or p-UID-NUMBER',
};

export const claims: Validation[] = [
  {
    expression: `object.metadata.name.matches('^w-[0-9a-f-]{36}$') &&
size(${owners('object')}) == 1 && ${owners('object')}.all(o, ${isController} &&
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

export const networkPolicies: Validation[] = [
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

/** A Secret of the type service-account-token gets the token of an account, which a right to read it would give away. */
export const secretNamed = (name: string): Validation => ({
  expression: `object.metadata.name == '${name}' && object.?type.orValue('') == '${MASTER_KEY_TYPE}'`,
  message: `the controller of Berth creates one Secret: ${name} of the type ${MASTER_KEY_TYPE}`,
});

export const leaseNamed = (name: string): Validation => ({
  expression: `object.metadata.name == '${name}'`,
  message: `the controller of Berth creates one Lease: ${name}`,
});

/** A session that builds runs Berth's own program. */
export const builds: Validation = {
  expression: `object.metadata.name.startsWith('env-') && has(object.spec.build)`,
  message: 'the controller of Berth creates only Sessions that build Environments: named env-DIGEST, with spec.build',
};

/** A Turn that is given with its Session gets the name of the Session. Later the controller writes nothing but its owner. */
export const turns: Validation[] = [
  ...on(['CREATE'], {
    expression: `object.metadata.name == object.spec.session &&
size(${owners('object')}) == 1 && ${owners('object')}.all(o, ${isSession} && o.name == object.spec.session)`,
    message:
      'the controller of Berth creates only the Turn of a Session’s input: it is named as the Session and owned by it',
  }),
  ...on(['UPDATE'], ownersOnly('Turns')),
];

export const approvals: Validation = ownersOnly('Approvals');

function ownersOnly(kind: string): Validation {
  return {
    expression: `${keeps('spec', 'false')} &&
${keepsMetadata('labels', '{}')} &&
${keepsMetadata('annotations', '{}')} &&
${keepsMetadata('finalizers', '[]')} &&
${owners('object')}.all(o, o.apiVersion.startsWith('${API_GROUP}/') || o in ${owners('oldObject')})`,
    message: `the controller of Berth changes nothing of ${kind} but their owner and status: somebody else uses the account of the controller`,
  };
}

const COMPONENT = 'berth-controller';

export const events: Validation[] = [
  ...on(['CREATE', 'UPDATE'], {
    expression: isEventOf('object', COMPONENT),
    message: `the controller of Berth writes only Events of ${COMPONENT} about objects of ${API_GROUP}`,
  }),
  ...on(['UPDATE'], {
    expression: isEventOf('oldObject', COMPONENT),
    message: `the controller of Berth changes only Events of ${COMPONENT}`,
  }),
];
