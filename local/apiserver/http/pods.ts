import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { failure } from '../errors.ts';
import type { Registry } from '../registry/registry.ts';
import type { PodHandlers, PodObject } from '../types.ts';
import type { ResourceRequest } from './request.ts';
import type { Call } from './resource.ts';

export interface PodRequests {
  registry: Registry;
  handlers: PodHandlers | undefined;
}

function podOf({ registry }: PodRequests, request: ResourceRequest): PodObject {
  const type = registry.catalogue.byStorage('pods');
  if (!type) throw new Error('pods are not served');
  return registry.get(type, request.namespace, request.name as string) as unknown as PodObject;
}

function handlersOf({ handlers }: PodRequests): PodHandlers {
  if (!handlers) throw failure(503, 'ServiceUnavailable', 'no kubelet runs the pods of this server');
  return handlers;
}

/** The log of a pod that exists, by whoever runs the pods. */
export async function sendLog(pods: PodRequests, { request, query, res }: Call): Promise<void> {
  const pod = podOf(pods, request);
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  await handlersOf(pods).log(pod, query, res, gone.signal);
}

/** Hands the connection over to whoever runs the pods. */
export function openStream(
  pods: PodRequests,
  kind: 'attach' | 'exec',
  request: ResourceRequest,
  query: URLSearchParams,
  upgrade: { req: IncomingMessage; socket: Duplex; head: Buffer },
): void {
  handlersOf(pods).stream(kind, podOf(pods, request), query, upgrade);
}
