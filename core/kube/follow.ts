import { anySignal } from '../abort.ts';
import { type Clock, delay } from '../runtime.ts';
import { ApiError, isExpired } from './errors.ts';
import { mayPass } from './retry.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';
import { watchOne } from './watch-one.ts';

/** Time without a useful answer from the cluster after which following gives up, milliseconds. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 500;
/** Length of a watch, after which it ends by itself so that a connection that died unnoticed is detected; seconds. */
const WATCH_SECONDS = 60;

/**
 * Yields an object as it is, then after every change; undefined once it does not exist. Survives lost connections and a
 * restart of the API server, and rejects with the last error when the cluster stays away. Ends with the signal's
 * reason.
 */
export async function* follow<T extends KubeObject>(
  api: Pick<KubeApi, 'list' | 'watch'>,
  resource: Resource<T>,
  ref: { namespace: string; name: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<Stored<T> | undefined> {
  /** True once a watch has been accepted: from then on a refusal is a new fact and is reported. */
  let wasWatched = false;
  /** Time of the first failed read. The silence of a watch before that was not a failure. */
  let lostAt: number | undefined;
  let wasListed = false;
  for (;;) {
    const silence = AbortSignal.timeout((WATCH_SECONDS + 15) * 1000);
    const watchSignal = anySignal(signal, silence);
    let isListed = false;
    try {
      for await (const object of watchOne(api, resource, ref, { signal, watchSignal, timeoutSeconds: WATCH_SECONDS })) {
        wasWatched ||= isListed;
        isListed = true;
        wasListed = true;
        lostAt = undefined;
        yield object;
      }
      wasWatched = true;
    } catch (error) {
      signal.throwIfAborted();
      if (wasListed && !(error instanceof ApiError)) wasWatched = true;
      if (!isExpired(error) && !silence.aborted) {
        lostAt ??= clock.monotonic();
        if (!mayPass(error, wasWatched) || clock.monotonic() - lostAt > PATIENCE_MS) throw error;
      }
    }
    await delay(clock, RETRY_MS, signal);
  }
}
