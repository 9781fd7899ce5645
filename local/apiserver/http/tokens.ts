import { requestToken } from '../auth/reviews.ts';
import type { ServiceTokens } from '../auth/service-tokens.ts';
import { isObject } from '../object.ts';
import type { Registry } from '../registry/registry.ts';
import { mediaType, parseObject, readBody } from './body.ts';
import type { Call } from './resource.ts';
import { sendJson } from './respond.ts';

export interface TokenRequests {
  registry: Registry;
  serviceTokens: ServiceTokens;
}

/** Serves `kubectl create token`. */
export async function createToken(
  { registry, serviceTokens }: TokenRequests,
  { req, res, request }: Call,
): Promise<void> {
  const body = await parseObject(await readBody(req), mediaType(req));
  const answer = requestToken(
    registry.store,
    serviceTokens,
    request.namespace as string,
    request.name as string,
    isObject(body) ? body : {},
    registry.clock.now(),
  );
  sendJson(res, 201, answer);
}
