import type { IncomingMessage } from 'node:http';
import { defined } from '../../../core/defined.ts';
import { badRequest } from '../errors.ts';
import type { UserInfo } from '../types.ts';
import type { Attributes } from './rbac.ts';

const EXTRA = 'impersonate-extra-';
const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;
const AUTHENTICATED = 'system:authenticated';
const UNAUTHENTICATED = 'system:unauthenticated';
const ANONYMOUS = 'system:anonymous';

/** Identity that a request asks to act as, by its Impersonate-* headers. */
interface Asked {
  username: string;
  uid: string | undefined;
  groups: string[];
  extra: Record<string, string[]>;
}

/** Returns the identity in the headers; undefined without any of them. Throws 400, as the API server, for one without a user. */
function askedBy({ headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>): Asked | undefined {
  const all = (name: string) => headersDistinct[name] ?? [];
  const extra: Record<string, string[]> = {};
  for (const [name, values = []] of Object.entries(headersDistinct)) {
    if (name.startsWith(EXTRA)) extra[unescaped(name.slice(EXTRA.length))] = values;
  }
  const [username = ''] = all('impersonate-user');
  const [uid] = all('impersonate-uid');
  const groups = all('impersonate-group');
  if (username !== '') return { username, uid, groups, extra };
  if (uid === undefined && groups.length === 0 && Object.keys(extra).length === 0) return undefined;
  throw badRequest('a group, UID or extra field is requested without impersonating a user');
}

/** Keys of extra fields are percent-encoded, as not every text may be the name of a header. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** Rights that are needed, each with the verb `impersonate`. */
function rightsFor({ username, uid, groups, extra }: Asked): Attributes[] {
  const right = (resource: string, name: string, more: object = {}): Attributes => ({
    verb: 'impersonate',
    group: '',
    resource,
    name,
    ...more,
  });
  const own = { group: 'authentication.k8s.io' };
  const [, namespace, account] = ACCOUNT.exec(username) ?? [];
  return [
    account === undefined ? right('users', username) : right('serviceaccounts', account, { namespace }),
    ...groups.map((group) => right('groups', group)),
    ...(uid === undefined ? [] : [right('uids', uid, own)]),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value) => right('userextras', value, { ...own, subresource: key })),
    ),
  ];
}

/**
 * Returns the user as whom a request acts: the authenticated one, or the one that its Impersonate-* headers name. `check` throws
 * where the authenticated user lacks a right for that.
 */
export function actingUser(
  user: UserInfo,
  req: Pick<IncomingMessage, 'headersDistinct'>,
  check: (right: Attributes) => void,
): UserInfo {
  const asked = askedBy(req);
  if (!asked) return user;
  for (const right of rightsFor(asked)) check(right);
  const { username, uid, extra } = asked;
  return {
    username,
    groups: withImplied(asked),
    ...defined({ uid }),
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
}

/** Adds the groups that the API server gives by itself: those of a service account unless others are named, and that of all users. */
function withImplied({ username, groups }: Asked): string[] {
  const [, namespace] = ACCOUNT.exec(username) ?? [];
  const accounts = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const named = groups.length === 0 && namespace !== undefined ? accounts : groups;
  if (named.includes(AUTHENTICATED) || named.includes(UNAUTHENTICATED)) return named;
  return [...named, username === ANONYMOUS ? UNAUTHENTICATED : AUTHENTICATED];
}
