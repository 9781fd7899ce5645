import { ApiError, isPodGone } from '../../core/kube/errors.ts';
import type { ObjectRef } from '../../core/kube/types.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { learn } from '../world/learn.ts';
import type { ReconcileContext } from './context.ts';

/**
 * What a kubelet that has begun its answer puts in the log's place when its container runtime does not answer, or the file
 * is not there (pkg/kubelet/kuberuntime, cri-client/pkg/logs); such a text has no line end.
 */
const EXCUSE =
  /^(unable to retrieve container logs for [a-z][a-z0-9.+-]*:\/\/\w+|failed to (try resolving symlinks in path|open log file) "\/[^"\n]*": [^\n]+)$/;
const LONGEST_EXCUSE = 4096;

/** The log of a pod's ended container, whole: rejects where the kubelet says that it cannot read it. */
export async function* endedLog({ effects, memory, signal }: ReconcileContext, ref: ObjectRef): AsyncGenerator<Buffer> {
  let start = '';
  for await (const piece of effects.api.podLog(ref, { container: CONTAINER, signal })) {
    if (start.length <= LONGEST_EXCUSE) start += piece.toString('latin1');
    yield piece;
  }
  if (start.length <= LONGEST_EXCUSE && EXCUSE.test(start)) throw new Error(`the kubelet: ${start}`);
  learn(memory, { fact: 'LogAnswered' });
}

/**
 * Whether the log of an ended container that could not be read because of `error` never will be: a pod that the API server
 * does not have, or that the kubelet refused, has none. Anything else may pass, as the start of an API server or a kubelet
 * does, or be a node that is gone: it is waited for as long as for that.
 */
export function isUnreadable({ effects, memory, world }: ReconcileContext, podUID: string, error: unknown): boolean {
  if (error instanceof ApiError && (error.code === 400 || isPodGone(error))) return true;
  const now = effects.clock.monotonic();
  learn(memory, { fact: 'LogUnreadable', podUID, at: now });
  return now - (memory.incarnation.logFailing?.since ?? now) >= world.installation.nodeGraceMs;
}
