import { ApiError, type ApiStatus } from '../../core/kube/errors.ts';

type Details = NonNullable<ApiStatus['details']>;
interface Named {
  group: string;
  plural: string;
}

/** Makes an error answer in the API server's own words. */
export const failure = (code: number, reason: string, message: string, details?: Details): ApiError =>
  new ApiError({ code, reason, message, ...(details ? { details: withoutEmpty(details) } : {}) });

function withoutEmpty(details: Details): Details {
  return Object.fromEntries(Object.entries(details).filter(([, value]) => value !== '' && value !== undefined));
}

/** Returns `sessions.berth.dev`, or `pods` in the core group. */
const qualified = (type: Named) => (type.group === '' ? type.plural : `${type.plural}.${type.group}`);

const detailsOf = (type: Named, name: string): Details => ({ name, group: type.group, kind: type.plural });

export const notFound = (type: Named, name: string) =>
  failure(404, 'NotFound', `${qualified(type)} "${name}" not found`, detailsOf(type, name));

export const alreadyExists = (type: Named, name: string) =>
  failure(409, 'AlreadyExists', `${qualified(type)} "${name}" already exists`, detailsOf(type, name));

export const conflict = (type: Named, name: string, why: string) =>
  failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${why}`,
    detailsOf(type, name),
  );

export const modified = (type: Named, name: string) =>
  conflict(type, name, 'the object has been modified; please apply your changes to the latest version and try again');

export const badRequest = (message: string) => failure(400, 'BadRequest', message);

export const prototypeKeyRefused = () => badRequest('the key "__proto__" is not accepted');

export const unauthorized = () => failure(401, 'Unauthorized', 'Unauthorized');

export const forbidden = (type: Named, name: string, why: string, details?: Partial<Details>) =>
  failure(403, 'Forbidden', `${qualified(type)}${name === '' ? '' : ` "${name}"`} is forbidden: ${why}`, {
    ...detailsOf(type, name),
    ...details,
  });

export const methodNotAllowed = () =>
  failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export const unknownPath = () => failure(404, 'NotFound', 'the server could not find the requested resource', {});

export const unsupportedMediaType = (accepted: string[]) =>
  failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );

export const expired = (message: string) => failure(410, 'Expired', message);

export const tooLarge = (limit: number) =>
  failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limit}`);

export const internal = (message: string) =>
  failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });

/** Returns the Status object that is sent for an error. */
export const statusObject = (status: ApiStatus) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: status.message,
  reason: status.reason,
  ...(status.details ? { details: status.details } : {}),
  code: status.code,
});
