import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

export interface WatchOneOptions {
  signal: AbortSignal;
  /** Ends the watch, not the list before it. */
  watchSignal?: AbortSignal;
  /** Seconds after which the API server ends the watch. */
  timeoutSeconds?: number;
}

/**
 * Yields one object as it is listed, then after every change until its watch ends; undefined where it does not exist.
 * Rejects with the error of the list or of the watch.
 */
export async function* watchOne<T extends KubeObject>(
  api: Pick<KubeApi, 'list' | 'watch'>,
  resource: Resource<T>,
  { namespace, name }: { namespace: string; name: string },
  { signal, watchSignal = signal, timeoutSeconds }: WatchOneOptions,
): AsyncGenerator<Stored<T> | undefined> {
  const scope = { namespace, fieldSelector: `metadata.name=${name}` };
  const { items, metadata } = await api.list(resource, { ...scope, signal });
  yield items[0];
  const { resourceVersion } = metadata;
  const limit = timeoutSeconds === undefined ? {} : { timeoutSeconds };
  for await (const event of api.watch(resource, { ...scope, resourceVersion, ...limit, signal: watchSignal })) {
    if (event.type !== 'BOOKMARK') yield event.type === 'DELETED' ? undefined : event.object;
  }
}
