import { sign, verify } from 'node:crypto';
import type { Clock, Random } from '../../../core/runtime.ts';
import { newUid } from '../registry/metadata.ts';
import type { VersionedStore } from '../store/versioned.ts';
import type { UserInfo } from '../types.ts';
import type { ServerKeys } from './keys.ts';

/** Default audience of a token: the API server itself. */
export const apiAudience = 'https://kubernetes.default.svc.cluster.local';
const issuer = apiAudience;

interface Claims {
  aud: string[];
  exp: number;
  iat: number;
  iss: string;
  jti: string;
  nbf: number;
  sub: string;
  'kubernetes.io': { namespace: string; serviceaccount: { name: string; uid: string } };
}

export interface Verified {
  user: UserInfo;
  audiences: string[];
  /** True for a token known from the start that was made for no audience. */
  fixed?: boolean;
}

/** Makes and checks the tokens of service accounts: JWTs signed with the server's key. */
export class ServiceTokens {
  readonly #keys: ServerKeys;
  readonly #store: VersionedStore;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(parts: { keys: ServerKeys; store: VersionedStore; clock: Clock; random: Random }) {
    this.#keys = parts.keys;
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  mint(
    account: { namespace: string; name: string; uid: string },
    audiences: string[],
    seconds: number,
  ): { token: string; expires: number } {
    const now = Math.floor(this.#clock.now() / 1000);
    const claims: Claims = {
      aud: audiences,
      exp: now + seconds,
      iat: now,
      iss: issuer,
      jti: newUid(this.#random),
      nbf: now,
      sub: `system:serviceaccount:${account.namespace}:${account.name}`,
      'kubernetes.io': {
        namespace: account.namespace,
        serviceaccount: { name: account.name, uid: account.uid },
      },
    };
    const signed = `${encode({ alg: 'ES256', typ: 'JWT' })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(signed), { key: this.#keys.privateKey, dsaEncoding: 'ieee-p1363' });
    return { token: `${signed}.${signature.toString('base64url')}`, expires: claims.exp * 1000 };
  }

  /** Returns the owner of a token; undefined when the token is not ours, has expired, or its account is gone. */
  verify(token: string): Verified | undefined {
    const [header, payload, signature, rest] = token.split('.');
    if (!header || !payload || !signature || rest !== undefined) return undefined;
    const good = verify(
      'sha256',
      Buffer.from(`${header}.${payload}`),
      { key: this.#keys.publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    if (!good) return undefined;
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims;
    const { namespace, serviceaccount } = claims['kubernetes.io'];
    const account = this.#store.get('serviceaccounts', namespace, serviceaccount.name);
    if (claims.exp * 1000 <= this.#clock.now() || account?.metadata.uid !== serviceaccount.uid) return undefined;
    return {
      audiences: claims.aud,
      user: {
        username: claims.sub,
        uid: serviceaccount.uid,
        groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${claims.jti}`] },
      },
    };
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
