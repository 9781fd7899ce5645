/** The log of one pod, followed for as long as the pod is there, whatever becomes of the connections. */
import { ApiError } from './kube/errors.ts';
import { mayRetry } from './kube/retry.ts';
import type { KubeApi } from './kube/types.ts';
import { LogPosition } from './log-position.ts';
import { CONTAINER } from './resources/names.ts';
import { type Clock, delay } from './runtime.ts';

/** The log of a pod that has just started is not to be had yet, milliseconds. */
const RETRY_MS = 250;
/** Between looks at a pod that has ended and is not gone yet they grow to this, milliseconds. */
const MAX_RETRY_MS = 2_000;
/** A cluster or a node that does not answer for this long is given up, milliseconds. */
const PATIENCE_MS = 30_000;

/**
 * The bytes of the log from `sinceTime` (RFC 3339) on, each once: a log that ends, as connections do, is opened again
 * until the pod is gone. Rejects with the last error when the cluster stays away, and with the signal's reason.
 */
export async function* followPodLog(
  api: Pick<KubeApi, 'podLog'>,
  clock: Clock,
  ref: { namespace: string; name: string },
  { sinceTime, signal }: { sinceTime?: string | undefined; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  const position = new LogPosition();
  let pause = RETRY_MS;
  let lostAt: number | undefined;
  for (;;) {
    const openedAt = clock.monotonic();
    const from = position.reopen() ?? sinceTime;
    const options = {
      container: CONTAINER,
      follow: true,
      timestamps: true,
      ...(from ? { sinceTime: from } : {}),
      signal,
    };
    try {
      for await (const chunk of api.podLog(ref, options)) {
        lostAt = undefined;
        const unread = position.push(chunk);
        if (unread.length === 0) continue;
        pause = RETRY_MS;
        yield unread;
      }
      lostAt = undefined;
    } catch (error) {
      signal.throwIfAborted();
      const code = error instanceof ApiError ? error.code : undefined;
      if (code === 404) return;
      if (code === 400) [pause, lostAt] = [RETRY_MS, undefined];
      else {
        const now = clock.monotonic();
        // What stood that long was no connection that failed to come.
        if (lostAt === undefined || now - openedAt > PATIENCE_MS) lostAt = now;
        if (!mayRetry(error, true) || now - lostAt > PATIENCE_MS) throw error;
      }
    }
    await delay(clock, pause, signal);
    pause = Math.min(2 * pause, MAX_RETRY_MS);
  }
}
