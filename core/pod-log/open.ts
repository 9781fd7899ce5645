/**
 * The one way in which the log of a session's pod is opened. The API server and the kubelet find a log by namespace and
 * name, and a name says nothing of whose pod has it.
 */
import { ApiError, ifThere } from '../kube/errors.ts';
import { pods } from '../kube/resources.ts';
import type { KubeApi } from '../kube/types.ts';
import { CONTAINER, LABEL_RUNNER } from '../resources/names.ts';
import { type Incarnation, isPodOf } from '../resources/session-pod.ts';

/** The pod of an incarnation, as the session's status names it. */
export interface NamedPod extends Incarnation {
  namespace: string;
  name: string;
}

export interface PodIdentity {
  namespace: string;
  name: string;
  uid: string;
}

/** A pod whose log is read. */
export interface LogPod extends PodIdentity {
  /** False for a pod whose program writes the log itself: there are neither frames nor events in it. */
  hasRunner: boolean;
}

export type LogApi = Pick<KubeApi, 'get' | 'podLog'>;

/** Options of a log, as of `KubeApi.podLog` for the session's container. */
export type LogOptions = Omit<Parameters<KubeApi['podLog']>[1], 'container'>;

/**
 * Resolves to the pod of the incarnation; undefined where there is none of the name, or that one is not the incarnation's:
 * it is not claimed yet, or it is another's.
 */
export async function findPod(
  api: Pick<KubeApi, 'get'>,
  { namespace, name, ...of }: NamedPod,
  signal?: AbortSignal,
): Promise<LogPod | undefined> {
  const pod = await ifThere(api.get(pods, { namespace, name }, signal ? { signal } : {}));
  if (!pod || !isPodOf(pod, of)) return undefined;
  return { namespace, name, uid: pod.metadata.uid, hasRunner: pod.metadata.labels?.[LABEL_RUNNER] !== 'None' };
}

/**
 * Yields the bytes of the pod’s log. Rejects with a 404 of `pods` where the pod is gone, also where another has its name.
 * The pod is read before the log is opened and again after the first bytes. With the same UID both times, the log opened in
 * between is the pod's own.
 */
export async function* openLog(api: LogApi, pod: PodIdentity, options: LogOptions): AsyncGenerator<Buffer> {
  const { namespace, name } = pod;
  await stillThere(api, pod, options.signal);
  let isChecked = false;
  for await (const chunk of api.podLog({ namespace, name }, { ...options, container: CONTAINER })) {
    if (!isChecked) await stillThere(api, pod, options.signal);
    isChecked = true;
    yield chunk;
  }
}

async function stillThere(
  api: Pick<KubeApi, 'get'>,
  { namespace, name, uid }: PodIdentity,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { metadata } = await api.get(pods, { namespace, name }, signal ? { signal } : {});
  if (metadata.uid === uid) return;
  const message = `pod "${name}" with UID ${uid} is gone: another pod has its name`;
  throw new ApiError({ code: 404, reason: 'NotFound', message, details: { kind: 'pods', name } });
}
