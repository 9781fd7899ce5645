import { HELPER_PATH } from '../../enter/hello.ts';
import { CONTAINER } from '../names.ts';
import { POD_NAME, type Validation } from './policy.ts';

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
