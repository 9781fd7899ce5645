import { createHash, timingSafeEqual } from 'node:crypto';
import { unauthorized } from '../errors.ts';
import type { TokenEntry, UserInfo } from '../types.ts';
import { apiAudience, type ServiceTokens, type Verified } from './service-tokens.ts';

const digest = (token: string) => createHash('sha256').update(token).digest();

/** Finds the user of a bearer token. */
export class Authenticator {
  #known: { digest: Buffer; user: UserInfo }[] = [];
  readonly #serviceTokens: ServiceTokens;

  constructor(tokens: TokenEntry[], serviceTokens: ServiceTokens) {
    this.#serviceTokens = serviceTokens;
    for (const entry of tokens) this.add(entry);
  }

  add({ token, user }: TokenEntry): void {
    const groups = [...new Set([...user.groups, 'system:authenticated'])];
    this.#known.push({ digest: digest(token), user: { ...user, groups } });
  }

  remove(token: string): void {
    const unwanted = digest(token);
    this.#known = this.#known.filter((entry) => !timingSafeEqual(entry.digest, unwanted));
  }

  /** Returns the user of a request; throws 401 without a token that is valid for this server. */
  authenticate(authorization: string | undefined): UserInfo {
    const token = /^Bearer\s+(\S+)$/i.exec(authorization ?? '')?.[1];
    const verified = token === undefined ? undefined : this.verify(token);
    if (!verified?.audiences.includes(apiAudience)) throw unauthorized();
    return verified.user;
  }

  /**
   * Returns user and audiences of a token; undefined for an unknown token. Fixed tokens are valid for the API server.
   */
  verify(token: string): Verified | undefined {
    const wanted = digest(token);
    const known = this.#known.find((entry) => timingSafeEqual(entry.digest, wanted));
    return known ? { user: known.user, audiences: [apiAudience], fixed: true } : this.#serviceTokens.verify(token);
  }
}
