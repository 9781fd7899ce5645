import { ApiError, isPodGone } from '../../core/kube/errors.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';

/**
 * Text that a kubelet sends instead of the log when its container runtime does not answer, or the file does not exist
 * (pkg/kubelet/kuberuntime, cri-client/pkg/logs); it has no line end.
 */
const EXCUSE =
  /^(unable to retrieve container logs for [a-z][a-z0-9.+-]*:\/\/\w+|failed to (try resolving symlinks in path|open log file) "\/[^"\n]*": [^\n]+)$/;
const LONGEST_EXCUSE = 4096;

/** The log of an ended container, whole: rejects where the kubelet says that it cannot read it, and as `log` does. */
export async function* endedLog({ memory }: ReconcileContext, log: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let start = '';
  for await (const piece of log) {
    if (start.length <= LONGEST_EXCUSE) start += piece.toString('latin1');
    yield piece;
  }
  if (start.length <= LONGEST_EXCUSE && EXCUSE.test(start)) throw new Error(`the kubelet: ${start}`);
  learn(memory, { fact: 'LogAnswered' });
}

/**
 * Reports whether the log of an ended container, which could not be read because of `error`, never can be. A pod that the
 * API server does not have, or that the kubelet refused, has none. Any other error may be temporary, or the node may be
 * gone: the wait for the log is as long as that for a node.
 */
export function isUnreadable({ effects, memory, world }: ReconcileContext, podUID: string, error: unknown): boolean {
  if (error instanceof ApiError && (error.code === 400 || isPodGone(error))) return true;
  const now = effects.clock.monotonic();
  learn(memory, { fact: 'LogUnreadable', podUID, at: now });
  return now - (memory.incarnation.logFailing?.since ?? now) >= world.installation.nodeGraceMs;
}
