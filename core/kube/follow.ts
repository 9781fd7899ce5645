import { type Clock, delay } from '../runtime.ts';
import { isExpired, TransportError } from './errors.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

/** A cluster that does not answer for this long is given up, milliseconds. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 500;
/** Every watch ends by itself after this time, so that a connection that died unseen is noticed; seconds. */
const WATCH_SECONDS = 60;

/**
 * An object as it is, then after every change; undefined once it does not exist. Gets over lost connections, and
 * rejects with the last TransportError when the cluster stays away. Ends with the signal's reason.
 */
export async function* follow<T extends KubeObject>(
  api: Pick<KubeApi, 'list' | 'watch'>,
  resource: Resource<T>,
  { namespace, name }: { namespace: string; name: string },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<Stored<T> | undefined> {
  const scope = { namespace, fieldSelector: `metadata.name=${name}` };
  let reachedAt = clock.monotonic();
  for (;;) {
    const silence = AbortSignal.timeout((WATCH_SECONDS + 15) * 1000);
    try {
      const { items, metadata } = await api.list(resource, { ...scope, signal });
      reachedAt = clock.monotonic();
      yield items[0];
      const watching = AbortSignal.any([signal, silence]);
      const { resourceVersion } = metadata;
      const options = { ...scope, resourceVersion, timeoutSeconds: WATCH_SECONDS, signal: watching };
      for await (const event of api.watch(resource, options)) {
        reachedAt = clock.monotonic();
        if (event.type !== 'BOOKMARK') yield event.type === 'DELETED' ? undefined : event.object;
      }
    } catch (error) {
      signal.throwIfAborted();
      const passing = error instanceof TransportError || isExpired(error) || silence.aborted;
      if (!passing) throw error;
      if (error instanceof TransportError && clock.monotonic() - reachedAt > PATIENCE_MS) throw error;
    }
    await delay(clock, RETRY_MS, signal);
  }
}
