/** Codes of a route's answers: those that follow from its rights, parameters and body, and those that it names. */
import { PROBLEMS, type ProblemCode } from '../problems/problems.ts';
import type { RouteInfo } from '../route.ts';

type Codes = readonly ProblemCode[];

const ALWAYS: Codes = [
  'MalformedRequest',
  'InvalidParameter',
  'Unauthenticated',
  'Forbidden',
  'NotFound',
  'NamespaceNotServed',
  'RequestTimeout',
  'UnsupportedMediaType',
  'ExpectationFailed',
  'TooManyRequests',
  'CallerLimit',
  'HeadersTooLarge',
  'Internal',
  'Overloaded',
  'ClusterUnavailable',
  'ShuttingDown',
];
/** Where the server reads JSON. It reads the body of every POST and DELETE, also to refuse one. */
const JSON_BODY: Codes = ['InvalidJson', 'BodyTooLarge', 'Invalid', 'NumberNotExact', 'TextNotUnicode', 'InputTooDeep'];
/** Where the cluster is asked to change an object. */
const CHANGE: Codes = ['Conflict', 'Invalid', 'BodyTooLarge'];
const CREATE: Codes = [...CHANGE, 'AlreadyExists', 'QuotaExceeded', 'IdempotencyKeyReused', 'Gone'];
/** Where the server connects to the pod of a session. */
const ENTER: Codes = [
  'EnterDisabled',
  'EnterUnsupported',
  'NotReady',
  'Suspended',
  'Stopping',
  'PodReplaced',
  'TooManyConnections',
  'Invalid',
];

export function codesOf(route: RouteInfo): ProblemCode[] {
  const { method, rights, query, takesBytes, isSocket, codes = [] } = route;
  const objects = rights.filter(({ subresource }) => !subresource).map(({ verb }) => verb);
  const found = new Set<ProblemCode>([...ALWAYS, ...codes]);
  const add = (when: boolean, more: Codes) => {
    if (when) for (const code of more) found.add(code);
  };
  add((method === 'POST' || method === 'DELETE') && !takesBytes, JSON_BODY);
  add(objects.includes('create'), CREATE);
  add(objects.includes('patch') || objects.includes('delete'), CHANGE);
  add(
    rights.some(({ subresource }) => subresource),
    ENTER,
  );
  add('uid' in query.shape, ['UIDMismatch']);
  add('continue' in query.shape, ['ContinueExpired']);
  add(isSocket === true, ['UpgradeRequired']);
  return [...found].sort();
}

/** Groups codes by their status. */
export function byStatus(codes: Codes): Map<number, ProblemCode[]> {
  return Map.groupBy(codes, (code) => PROBLEMS[code][0]);
}
