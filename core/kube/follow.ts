import { type Clock, delay } from '../runtime.ts';
import { ApiError, isExpired } from './errors.ts';
import { mayPass } from './retry.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

/** A cluster that gives no answer, or none that is of use, for this long is given up, milliseconds. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 500;
/** Every watch ends by itself after this time, so that a connection that died unseen is noticed; seconds. */
const WATCH_SECONDS = 60;

/**
 * An object as it is, then after every change; undefined once it does not exist. Gets over lost connections and an API
 * server that starts anew, and rejects with the last error when the cluster stays away. Ends with the signal's reason.
 */
export async function* follow<T extends KubeObject>(
  api: Pick<KubeApi, 'list' | 'watch'>,
  resource: Resource<T>,
  { namespace, name }: { namespace: string; name: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<Stored<T> | undefined> {
  const scope = { namespace, fieldSelector: `metadata.name=${name}` };
  let wasListed = false;
  /** It was let watch as well: a refusal is news. */
  let wasWatched = false;
  /** Since when nothing has been read; however long a watch had been silent before, it was no failure. */
  let lostAt: number | undefined;
  for (;;) {
    const silence = AbortSignal.timeout((WATCH_SECONDS + 15) * 1000);
    try {
      const { items, metadata } = await api.list(resource, { ...scope, signal });
      wasListed = true;
      lostAt = undefined;
      yield items[0];
      const watching = AbortSignal.any([signal, silence]);
      const { resourceVersion } = metadata;
      const options = { ...scope, resourceVersion, timeoutSeconds: WATCH_SECONDS, signal: watching };
      for await (const event of api.watch(resource, options)) {
        wasWatched = true;
        if (event.type !== 'BOOKMARK') yield event.type === 'DELETED' ? undefined : event.object;
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
