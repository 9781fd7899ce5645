import { HELPER_PATH } from '../../enter/hello.ts';
import { ANNOTATION_TOUCHED_AT, CONTAINER } from '../names.ts';
import { isEventOf, keeps, keepsMetadata, POD_NAME, type Validation } from './policy.ts';

/** What the service account of the HTTP API may do, by kind of object. */

/** The API server shows the options of an exec alone, and neither the pod nor its labels. */
export const exec: Validation[] = [
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

/**
 * The API names its caller in what it creates, who is a user with a token. The cluster's own users, such as `system:admin` and
 * those of its nodes and controllers, are not among them, except service accounts.
 */
export const requesters: Validation = {
  expression: `object.spec.?requester.orValue('') != '' &&
(!object.spec.requester.startsWith('system:') || object.spec.requester.startsWith('system:serviceaccount:'))`,
  message:
    'the HTTP API of Berth creates only what has its caller as spec.requester, who is none of the cluster’s own users (system:…), except service accounts',
};

/** Fields of a Session and a Turn that requests of clients change. */
export const changes: Validation = {
  expression: `${keeps(
    'spec',
    `k in (request.resource.resource == 'turns' ? ['cancel'] : ['suspend', 'suspendRequest', 'restartRequest'])`,
  )} &&
${keeps('metadata.?annotations.orValue({})', `k == '${ANNOTATION_TOUCHED_AT}'`)} &&
${keepsMetadata('labels', '{}')} &&
${keepsMetadata('finalizers', '[]')} &&
${keepsMetadata('ownerReferences', '[]')}`,
  message: `the HTTP API of Berth changes only spec.suspend, suspendRequest, restartRequest and the annotation ${ANNOTATION_TOUCHED_AT} of a Session, and spec.cancel of a Turn`,
};

const COMPONENT = 'berth-api';

export const events: Validation = {
  expression: `object.metadata.name.matches('^idempotency-(key|made)-[0-9a-f]{40}$') &&
${isEventOf('object', COMPONENT)}`,
  message: `the HTTP API of Berth creates only the Events of Idempotency-Keys: named idempotency-key-DIGEST or idempotency-made-DIGEST, of ${COMPONENT}`,
};
