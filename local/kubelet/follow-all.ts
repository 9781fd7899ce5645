import { isExpired } from '../../core/kube/errors.ts';
import type { KubeObject, Resource, WatchEvent } from '../../core/kube/types.ts';
import { type Clock, delay, type Logger } from '../../core/runtime.ts';
import type { Store } from '../apiserver/types.ts';

/** Wait before the objects are listed anew after a failure, milliseconds. */
const RELIST_MS = 200;

export interface FollowAllOptions<T extends KubeObject> {
  /** Version to watch from; undefined: the objects are listed first. */
  from?: string;
  /** Takes up the objects as they are; resolves with the version of the list. */
  list(): Promise<string>;
  changed(event: Exclude<WatchEvent<T>, { type: 'BOOKMARK' }>): void;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** Follows all objects of a kind until the signal aborts, and lists them anew where the watch fails. */
export async function followAll<T extends KubeObject>(
  store: Store,
  resource: Resource<T>,
  { from, list, changed, clock, logger, signal }: FollowAllOptions<T>,
): Promise<void> {
  let resourceVersion = from;
  while (!signal.aborted) {
    try {
      resourceVersion ??= await list();
      for await (const event of store.watch(resource, { resourceVersion, signal })) {
        resourceVersion = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
        if (event.type !== 'BOOKMARK') changed(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isExpired(error)) logger.warn({ resource: resource.plural, err: error }, 'watch failed');
      await delay(clock, RELIST_MS, signal).catch(() => {});
      resourceVersion = undefined;
    }
  }
}
