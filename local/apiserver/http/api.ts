import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../../../core/kube/errors.ts';
import type { Logger } from '../../../core/runtime.ts';
import type { AdmissionPolicies } from '../admission/policies.ts';
import type { Authenticator } from '../auth/authenticate.ts';
import { actingUser } from '../auth/impersonate.ts';
import { type Attributes, denial, type Rbac } from '../auth/rbac.ts';
import type { Review } from '../auth/reviews.ts';
import { failure, forbidden, methodNotAllowed, unknownPath } from '../errors.ts';
import type { FaultInjection } from '../faults.ts';
import { isObject } from '../object.ts';
import type { Registry } from '../registry/registry.ts';
import type { RequestFacts, UserInfo } from '../types.ts';
import { mediaType, parseObject, readBody } from './body.ts';
import type { Documents } from './documents.ts';
import { handleDocument } from './documents.ts';
import { connectRequest, openStream, type PodRequests, sendLog, streamablePod } from './pods.ts';
import { factsOf, nameSelected, parseResourcePath, type ResourceRequest, verbOf } from './request.ts';
import { handleResource } from './resource.ts';
import { sendError, sendJson } from './respond.ts';
import { createToken, type TokenRequests } from './tokens.ts';
import type { WatchHub } from './watch.ts';

export interface ApiParts {
  registry: Registry;
  authenticator: Authenticator;
  rbac: Rbac;
  admission: AdmissionPolicies;
  reviews: Review[];
  documents: Documents;
  pods: PodRequests;
  tokens: TokenRequests;
  hub: WatchHub;
  faults: FaultInjection;
  logger: Logger;
}

interface Admitted {
  url: URL;
  user: UserInfo;
  verb: string;
  request: ResourceRequest | undefined;
  facts: RequestFacts;
}

/** Handles every request: authentication, authorization, dispatch and answer. */
export class Api {
  readonly #parts: ApiParts;

  constructor(parts: ApiParts) {
    this.#parts = parts;
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      const admitted = this.#admit(req);
      await this.#parts.faults.before(admitted.facts);
      if (this.#parts.faults.losesAnswer(admitted.facts)) loseAnswer(res);
      await this.#answer(req, res, admitted);
    } catch (error) {
      if (!(error instanceof ApiError)) {
        this.#parts.logger.error(
          { err: error, method: req.method, url: req.url },
          'a request failed for a reason of our own',
        );
      }
      sendError(res, error);
    } finally {
      // The rest of a refused body is discarded.
      if (!req.complete && !res.writableEnded) req.resume();
    }
  }

  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const admitted = this.#admit(req);
    const { request, url } = admitted;
    const kind = request?.subresource;
    if (request?.plural !== 'pods' || (kind !== 'attach' && kind !== 'exec')) throw unknownPath();
    await this.#parts.faults.before(admitted.facts);
    this.#parts.admission.validate(connectRequest(kind, admitted.user, request, url.searchParams));
    openStream(this.#parts.pods, kind, request, url.searchParams, { req, socket, head });
  }

  #admit(req: IncomingMessage): Admitted {
    const { authenticator, rbac, registry } = this.#parts;
    const authenticated = authenticator.authenticate(req.headers.authorization);
    const user = actingUser(authenticated, req, (right) => {
      if (!rbac.authorize(authenticated, right).allowed) throw refuse(authenticated, right);
    });
    const url = new URL(req.url ?? '/', 'https://localhost');
    const request = parseResourcePath(url.pathname, registry.catalogue);
    const verb = verbOf(req.method ?? 'GET', request, url.searchParams);
    const attributes: Attributes = request
      ? {
          verb,
          group: request.group,
          resource: request.plural,
          subresource: request.subresource,
          // RBAC treats a namespace as an object in itself.
          namespace: request.plural === 'namespaces' && request.group === '' ? request.name : request.namespace,
          name: request.name ?? nameSelected(verb, url.searchParams),
        }
      : { verb, path: url.pathname };
    if (!rbac.authorize(user, attributes).allowed) throw refuse(user, attributes);
    return {
      url,
      user,
      verb,
      request,
      facts: factsOf(req.method ?? 'GET', url.pathname, verb, request, user.username),
    };
  }

  async #answer(req: IncomingMessage, res: ServerResponse, admitted: Admitted): Promise<void> {
    const { registry, hub, documents, pods, tokens, reviews, admission } = this.#parts;
    const { request, url, user, verb } = admitted;
    if (!request) return handleDocument(documents, req, res, url);
    const { type, subresource } = request;
    const review = reviews.find((each) => each.group === request.group && each.plural === request.plural);
    if (review && request.version === 'v1') return answerReview(review, req, res, request, user);
    if (!type || request.rest.length > 0 || (type.namespaced && !request.namespace && request.name))
      throw unknownPath();
    const call = { req, res, query: url.searchParams, user, verb, request, type, admission };
    if (
      subresource === undefined ||
      (subresource === 'status' && type.status) ||
      (subresource === 'scale' && type.scale)
    ) {
      // Objects of a namespaced kind can be listed over all namespaces, but are created in one.
      if (type.namespaced && !request.namespace && verb === 'create') throw methodNotAllowed();
      if (!type.namespaced && request.namespace) throw unknownPath();
      return handleResource(call, registry, hub);
    }
    if (type.storage === 'pods' && subresource === 'log' && verb === 'get') return sendLog(pods, call);
    if (type.storage === 'serviceaccounts' && subresource === 'token' && verb === 'create')
      return createToken(tokens, call);
    if (type.storage === 'pods' && (subresource === 'attach' || subresource === 'exec')) {
      admission.validate(connectRequest(subresource, user, request, url.searchParams));
      streamablePod(pods, request, url.searchParams);
      throw failure(400, 'BadRequest', 'unable to upgrade: only WebSocket connections are supported');
    }
    throw unknownPath();
  }
}

function refuse(user: UserInfo, attributes: Attributes) {
  const why = denial(user, attributes);
  if ('path' in attributes) return failure(403, 'Forbidden', `forbidden: ${why}`);
  return forbidden({ group: attributes.group, plural: attributes.resource }, attributes.name ?? '', why);
}

async function answerReview(
  review: Review,
  req: IncomingMessage,
  res: ServerResponse,
  request: ResourceRequest,
  user: UserInfo,
): Promise<void> {
  if (req.method !== 'POST' || request.name !== undefined) throw methodNotAllowed();
  const body = await parseObject(await readBody(req), mediaType(req));
  const identity = { kind: review.kind, apiVersion: `${review.group}/v1` };
  const answer = review.answer(isObject(body) ? body : {}, user, request.namespace);
  sendJson(res, 201, { ...answer, ...identity, metadata: answer.metadata ?? {} });
}

/** Loses the answer: the request is carried out, and then the connection breaks before a byte of the answer. */
function loseAnswer(res: ServerResponse): void {
  res.writeHead = () => {
    res.destroy();
    return res;
  };
  res.end = () => res;
  res.write = () => true;
}
