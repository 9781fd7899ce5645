import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AdmissionRequest } from '../admission/request.ts';
import { badRequest, failure } from '../errors.ts';
import type { Registry } from '../registry/registry.ts';
import type { PodHandlers, PodObject, UserInfo } from '../types.ts';
import { isTrue, type ResourceRequest } from './request.ts';
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

/** Checks the container: the named one, or the only one. Throws 400 when it is ambiguous. */
function checkContainer({ metadata, spec }: PodObject, query: URLSearchParams): void {
  const named = query.get('container');
  const names = [...(spec.initContainers ?? []), ...spec.containers].map(({ name }) => name);
  if (named && !names.includes(named)) throw badRequest(`container ${named} is not valid for pod ${metadata.name}`);
  if (!named && names.length > 1) {
    throw badRequest(
      `a container name must be specified for pod ${metadata.name}, choose one of: [${names.join(' ')}]`,
    );
  }
}

/** Serves the log of an existing pod through the pod handlers. */
export async function sendLog(pods: PodRequests, { request, query, res }: Call): Promise<void> {
  const pod = podOf(pods, request);
  checkContainer(pod, query);
  if (!pod.spec.nodeName) {
    res.writeHead(204).end();
    return;
  }
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  await handlersOf(pods).log(pod, query, res, gone.signal);
}

/** Returns an attach or exec as admission policies see it, whether the pod exists or not. */
export function connectRequest(
  kind: 'attach' | 'exec',
  user: UserInfo,
  { namespace, name }: ResourceRequest,
  query: URLSearchParams,
): AdmissionRequest {
  const options = kind === 'attach' ? 'PodAttachOptions' : 'PodExecOptions';
  const flags = ['stdin', 'stdout', 'stderr', 'tty'].filter((flag) => isTrue(query.get(flag)));
  const container = query.get('container');
  return {
    user,
    operation: 'CONNECT',
    kind: { group: '', version: 'v1', kind: options },
    resource: { group: '', version: 'v1', resource: 'pods' },
    subresource: kind,
    namespace,
    name,
    object: {
      apiVersion: 'v1',
      kind: options,
      ...Object.fromEntries(flags.map((flag) => [flag, true])),
      ...(container ? { container } : {}),
      ...(kind === 'exec' ? { command: query.getAll('command') } : {}),
    },
    dryRun: false,
  };
}

/** Passes the connection to the pod handlers. */
export function openStream(
  pods: PodRequests,
  kind: 'attach' | 'exec',
  request: ResourceRequest,
  query: URLSearchParams,
  upgrade: { req: IncomingMessage; socket: Duplex; head: Buffer },
): void {
  handlersOf(pods).stream(kind, streamablePod(pods, request, query), query, upgrade);
}

/** Returns a pod for attach and exec. Throws 400 while it has no node. */
export function streamablePod(pods: PodRequests, request: ResourceRequest, query: URLSearchParams): PodObject {
  const pod = podOf(pods, request);
  checkContainer(pod, query);
  if (!pod.spec.nodeName) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
  return pod;
}
