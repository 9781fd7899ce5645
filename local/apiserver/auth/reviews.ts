import { badRequest, notFound } from '../errors.ts';

import { invalid, invalidObject, required } from '../fields.ts';
import { at, isObject, type Json, timestamp } from '../object.ts';
import type { VersionedStore } from '../store/versioned.ts';
import type { UserInfo } from '../types.ts';
import type { Authenticator } from './authenticate.ts';
import type { Attributes, Rbac } from './rbac.ts';
import { apiAudience, type ServiceTokens } from './service-tokens.ts';

/** Kind of a review, which is created and answered but never stored. */
export interface Review {
  group: string;
  plural: string;
  kind: string;
  namespaced: boolean;
  answer(body: Json, asker: UserInfo, namespace: string | undefined): Json;
}

const authorization = { group: 'authorization.k8s.io', namespaced: false };
const authentication = { group: 'authentication.k8s.io', namespaced: false };

const userInfo = ({ username, uid, groups, extra }: UserInfo): Json => ({
  username,
  ...(uid ? { uid } : {}),
  groups,
  ...(extra ? { extra } : {}),
});

export function reviews(authenticator: Authenticator, rbac: Rbac): Review[] {
  const decide = (user: UserInfo, spec: unknown): Json => {
    const { allowed, reason } = rbac.authorize(user, attributesOf(spec));
    return { allowed, ...(reason ? { reason } : {}) };
  };
  return [
    {
      ...authentication,
      plural: 'tokenreviews',
      kind: 'TokenReview',
      answer: (body) => ({ ...body, status: reviewToken(authenticator, body) }),
    },
    {
      ...authentication,
      plural: 'selfsubjectreviews',
      kind: 'SelfSubjectReview',
      answer: (body, asker) => ({ ...body, status: { userInfo: userInfo(asker) } }),
    },
    {
      ...authorization,
      plural: 'subjectaccessreviews',
      kind: 'SubjectAccessReview',
      answer: (body) => ({ ...body, status: decide(subjectOf(body), body.spec) }),
    },
    {
      ...authorization,
      plural: 'localsubjectaccessreviews',
      kind: 'LocalSubjectAccessReview',
      namespaced: true,
      answer: (body) => ({ ...body, status: decide(subjectOf(body), body.spec) }),
    },
    {
      ...authorization,
      plural: 'selfsubjectaccessreviews',
      kind: 'SelfSubjectAccessReview',
      answer: (body, asker) => ({ ...body, status: decide(asker, body.spec) }),
    },
    {
      ...authorization,
      plural: 'selfsubjectrulesreviews',
      kind: 'SelfSubjectRulesReview',
      answer: (body, asker) => ({
        ...body,
        status: rulesStatus(rbac, asker, String(at(body, 'spec', 'namespace') ?? '')),
      }),
    },
  ];
}

function reviewToken(authenticator: Authenticator, body: Json): Json {
  const token = at(body, 'spec', 'token');
  if (typeof token !== 'string' || token === '')
    throw badRequest('token is required for TokenReview in authentication');
  const asked = at(body, 'spec', 'audiences');
  const audiences = Array.isArray(asked) && asked.length > 0 ? (asked as string[]) : [apiAudience];
  const verified = authenticator.verify(token);
  if (!verified) return { user: {}, error: 'invalid bearer token' };
  const common = audiences.filter((audience) => verified.audiences.includes(audience));
  if (common.length === 0 && verified.fixed) return { user: {}, error: 'invalid bearer token' };
  if (common.length === 0) {
    const list = (values: string[]) => `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
    const error = `[invalid bearer token, token audiences ${list(verified.audiences)} is invalid for the target audiences ${list(audiences)}]`;
    return { user: {}, error };
  }
  return { authenticated: true, user: userInfo(verified.user), audiences: common };
}

/** Returns the subject of a SubjectAccessReview. Throws 422 without attributes, or with neither user nor group. */
function subjectOf(body: Json): UserInfo {
  const spec = isObject(body.spec) ? body.spec : {};
  const type = { group: authorization.group, kind: '' };
  const user = typeof spec.user === 'string' ? spec.user : '';
  const groups = Array.isArray(spec.groups) ? (spec.groups as string[]) : [];
  if (!spec.resourceAttributes === !spec.nonResourceAttributes) {
    throw invalidObject(type, '', [
      invalid(
        'spec.resourceAttributes',
        spec.resourceAttributes ?? null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    ]);
  }
  if (user === '' && groups.length === 0) {
    throw invalidObject(type, '', [required('spec.user', 'at least one of user or group must be specified')]);
  }
  return { username: user, groups };
}

function attributesOf(spec: unknown): Attributes {
  const path = at(spec, 'nonResourceAttributes');
  const read = (value: unknown, key: string) => {
    const found = at(value, key);
    return typeof found === 'string' ? found : '';
  };
  if (isObject(path)) return { verb: read(path, 'verb'), path: read(path, 'path') };
  const attributes = at(spec, 'resourceAttributes');
  return {
    verb: read(attributes, 'verb'),
    group: read(attributes, 'group'),
    resource: read(attributes, 'resource'),
    subresource: read(attributes, 'subresource'),
    namespace: read(attributes, 'namespace'),
    name: read(attributes, 'name'),
  };
}

function rulesStatus(rbac: Rbac, user: UserInfo, namespace: string): Json {
  if (namespace === '') throw badRequest('no namespace on request');
  const rules = rbac.rulesOf(user, namespace);
  return {
    resourceRules: rules.filter((rule) => rule.resources),
    nonResourceRules: rules.filter((rule) => rule.nonResourceURLs),
    incomplete: false,
  };
}

const minSeconds = 600;

/** Serves the token subresource of a service account. Throws 422 for a validity that is too short. */
export function requestToken(
  store: VersionedStore,
  tokens: ServiceTokens,
  namespace: string,
  name: string,
  body: Json,
  now: number,
): Json {
  const account = store.get('serviceaccounts', namespace, name);
  if (!account) throw notFound({ group: '', plural: 'serviceaccounts' }, name);
  const seconds = at(body, 'spec', 'expirationSeconds') ?? 3600;
  if (typeof seconds !== 'number' || seconds < minSeconds) {
    throw invalidObject({ group: authentication.group, kind: 'TokenRequest' }, '', [
      invalid('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes'),
    ]);
  }
  const asked = at(body, 'spec', 'audiences');
  const audiences = Array.isArray(asked) && asked.length > 0 ? (asked as string[]) : [apiAudience];
  const { token, expires } = tokens.mint({ namespace, name, uid: account.metadata.uid as string }, audiences, seconds);
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, creationTimestamp: timestamp(now) },
    spec: { audiences, expirationSeconds: seconds, boundObjectRef: null },
    status: { token, expirationTimestamp: timestamp(expires) },
  };
}
