/** Readable text of a running session: the text of its pods, without the runner's frames. */
import { ReadableText } from '../frames/readable.ts';
import { ApiError } from '../kube/errors.ts';
import { follow } from '../kube/follow.ts';
import type { KubeApi } from '../kube/types.ts';
import { sessions } from '../resources/kinds.ts';
import type { Clock } from '../runtime.ts';
import { followPodLog } from './follow.ts';
import { findPod, type LogApi, type NamedPod, openLog } from './open.ts';

/** Options of the text; `sinceTime`, RFC 3339, leaves out everything written earlier. */
export interface TextOptions {
  sinceTime?: string;
  signal: AbortSignal;
}

/** Yields the text written so far; no text for a pod that has not started, is gone or is another's. */
export async function* podText(api: LogApi, named: NamedPod, options: TextOptions): AsyncGenerator<string> {
  const pod = await findPod(api, named, options.signal);
  if (!pod) return;
  try {
    yield* readable(openLog(api, pod, options), pod);
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 404)) throw error;
  }
}

/**
 * Yields the text of the session's pods, one after the other and live, until the session is finished or deleted. Ends
 * with the signal's reason.
 */
export async function* sessionText(
  api: Pick<KubeApi, 'get' | 'list' | 'watch' | 'podLog'>,
  clock: Clock,
  { namespace, name, uid }: { namespace: string; name: string; uid: string },
  { signal, ...since }: TextOptions,
): AsyncGenerator<string> {
  // The requested start time applies to the first pod; later pods are read from their beginning.
  let from: { sinceTime?: string } = since;
  for await (const session of follow(api, sessions, { namespace, name }, { clock, signal })) {
    if (session?.metadata.uid !== uid || session.status?.phase === 'Finished') return;
    const { podName, incarnation = 0 } = session.status ?? {};
    // The pod's name is written before the pod is created or claimed, and the session changes again after that.
    const pod = podName && (await findPod(api, { namespace, name: podName, session: uid, incarnation }, signal));
    if (!pod) continue;
    for await (const text of readable(followPodLog(api, clock, pod, { ...from, signal }), pod)) {
      from = {};
      yield text;
    }
  }
}

/** Yields the readable text of a pod's log. */
export async function* readable(log: AsyncIterable<Buffer>, pod: { hasRunner: boolean }): AsyncGenerator<string> {
  const text = new ReadableText(pod);
  for await (const chunk of log) {
    const piece = text.push(chunk);
    if (piece) yield piece;
  }
  const rest = text.end();
  if (rest) yield rest;
}
