/** Authentication by TokenReview and authorization by SubjectAccessReview: the cluster's own users and RBAC decide. */
import { createHash } from 'node:crypto';
import { subjectAccessReviews, tokenReviews } from '../../core/kube/resources.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import { API_GROUP, API_VERSION } from '../../core/resources/names.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Limits } from '../limits/limits.ts';
import { Problem } from '../problems/problems.ts';
import { KnownTokens } from './known-tokens.ts';
import { TtlCache } from './ttl-cache.ts';

export interface Caller {
  username: string;
  uid?: string;
  groups: string[];
  extra?: Record<string, string[]>;
}

/** A right on a resource of berth.dev. */
export interface Right {
  verb: 'create' | 'get' | 'list' | 'update' | 'patch' | 'delete';
  resource: 'sessions' | 'turns' | 'approvals';
  /** Rights on subresources are independent of those on the object. They need not exist in the cluster's API. */
  subresource?: 'exec' | 'files' | 'ports';
  namespace: string;
  /** Name of the object; absent: all objects. */
  name?: string;
}

/** Time for which a consent of the cluster is cached: a withdrawn right or token works on for that long. */
export const CONSENT_MS = 10_000;
/** Time for which a refusal is cached: a right that was just given counts after that long. */
const REFUSAL_MS = 1_000;
const CACHE_ENTRIES = 10_000;
const MAX_TOKEN_LENGTH = 16 * 1024;

export class Access {
  readonly #api: Pick<KubeApi, 'create'>;
  readonly #audiences: readonly string[];
  readonly #limits: Pick<Limits, 'newToken' | 'unauthenticated'>;
  readonly #callers: TtlCache<Caller | string>;
  readonly #rights: TtlCache<{ allowed: boolean; reason: string }>;
  readonly #known: KnownTokens;

  constructor(options: {
    api: Pick<KubeApi, 'create'>;
    clock: Clock;
    audiences: readonly string[];
    limits: Pick<Limits, 'newToken' | 'unauthenticated'>;
  }) {
    this.#api = options.api;
    this.#audiences = options.audiences;
    this.#limits = options.limits;
    const ttlOf = (hasConsent: boolean) => (hasConsent ? CONSENT_MS : REFUSAL_MS);
    const cached = { ttlMs: CONSENT_MS, maxEntries: CACHE_ENTRIES };
    this.#callers = new TtlCache(options.clock, { ...cached, ttlOf: (caller) => ttlOf(typeof caller !== 'string') });
    this.#rights = new TtlCache(options.clock, { ...cached, ttlOf: ({ allowed }) => ttlOf(allowed) });
    this.#known = new KnownTokens(options.clock);
  }

  /** Returns the owner of the token in an Authorization header. Rejects with a Problem. */
  async authenticate(authorization: string | undefined): Promise<Caller> {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined || token.length > MAX_TOKEN_LENGTH) {
      await this.#limits.unauthenticated('');
      throw new Problem('Unauthenticated', `Send the header "Authorization: Bearer TOKEN". ${this.#howTo()}`);
    }
    // The digest is the key, so that the cache holds no tokens.
    const key = createHash('sha256').update(token).digest('base64');
    const caller = await this.#callers.get(key, () => this.#review(token, key)).catch(notAsked);
    if (typeof caller === 'string') {
      await this.#limits.unauthenticated(key);
      throw new Problem('Unauthenticated', `${caller} ${this.#howTo()}`);
    }
    return caller;
  }

  /** Rejects with a Problem when the caller lacks the right, or cannot be the requester of what is to be created. */
  async authorize(caller: Caller, { verb, resource, subresource, namespace, name }: Right): Promise<void> {
    if (verb === 'create' && !subresource && isOfCluster(caller)) {
      throw new Problem(
        'Forbidden',
        `User "${caller.username}" is one of the cluster's own users ("system:…"), for whom this API creates no ${resource}. Call it as a service account, or as a user with another name; or create the object with kubectl.`,
      );
    }
    const what = `${verb} ${resource}${subresource ? `/${subresource}` : ''}.${API_GROUP}${name ? ` "${name}"` : ''} in namespace "${namespace}"`;
    const about = { group: API_GROUP, version: API_VERSION, verb, resource, namespace };
    const asked = { ...about, ...(subresource && { subresource }), ...(name && { name }) };
    await this.#mustBeAllowed(caller, { resourceAttributes: asked }, what, 'Ask for a Role that allows it.');
  }

  /** Authorizes `caller` to read a non-resource path; otherwise like `authorize`. */
  async authorizePath(caller: Caller, path: string): Promise<void> {
    const asked = { nonResourceAttributes: { path, verb: 'get' } };
    await this.#mustBeAllowed(caller, asked, `get ${path}`, 'Ask for a ClusterRole that allows it on this URL.');
  }

  async #mustBeAllowed(caller: Caller, asked: object, what: string, howTo: string): Promise<void> {
    const { username: user, uid, groups, extra } = caller;
    const spec = { user, groups, ...(uid ? { uid } : {}), ...(extra ? { extra } : {}), ...asked };
    const ask = async () => {
      const { status } = await this.#api.create(subjectAccessReviews, { metadata: { name: '' }, spec });
      return { allowed: status?.allowed === true && status.denied !== true, reason: status?.reason ?? '' };
    };
    const { allowed, reason } = await this.#rights.get(JSON.stringify(spec), ask).catch(notAsked);
    if (allowed) return;
    const why = reason ? ` (${reason})` : '';
    throw new Problem('Forbidden', `User "${user}" may not ${what}${why}. ${howTo}`);
  }

  /** Returns the caller, or the reason why there is none. */
  async #review(token: string, digest: string): Promise<Caller | string> {
    if (!this.#known.has(digest)) await this.#limits.newToken();
    const audiences = [...this.#audiences];
    const { status } = await this.#api.create(tokenReviews, { metadata: { name: '' }, spec: { token, audiences } });
    if (!status?.authenticated || !status.user?.username) return 'The cluster does not accept the token.';
    // An authenticator that knows no audiences leaves them out: then the token is for the API server, not for Berth.
    if (!status.audiences?.some((audience) => audiences.includes(audience))) {
      return `The token was not issued for ${audiences.join(' or ')}.`;
    }
    this.#known.add(digest);
    const { username, uid, groups, extra } = status.user;
    return { username, groups: groups ?? [], ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) };
  }

  #howTo(): string {
    return `A token comes for example from: kubectl create token SERVICE_ACCOUNT --audience ${this.#audiences[0]}`;
  }
}

/** Users of nodes, of the cluster's controllers and of its administration. An admission policy lets the API name none as requester. */
function isOfCluster({ username }: Caller): boolean {
  return username.startsWith('system:') && !username.startsWith('system:serviceaccount:');
}

/** Hides the cluster's error: it was an answer to this server, not to the caller. */
function notAsked(error: unknown): never {
  if (error instanceof Problem) throw error;
  const why = error instanceof Error ? error.message : String(error);
  throw new Problem('ClusterUnavailable', `The cluster could not be asked who may do this: ${why}. Try again.`, {
    retryAfterSeconds: 1,
  });
}
