import type { KubeApi } from '../../core/kube/types.ts';

/**
 * The API for what many sessions may want at the same moment, as all do whose results waited for a store that has come
 * back: so many calls are under way at once, the others wait in line and leave it when their signal aborts. What else the
 * controller asks of the API server, its lease first of all, then never waits behind them.
 */
export function boundedApi(api: KubeApi, most: number): Pick<KubeApi, 'get' | 'list' | 'create' | 'delete'> {
  const line = new Set<() => void>();
  let free = most;

  const admitted = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      const enter = () => {
        line.delete(enter);
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        line.delete(enter);
        reject(signal?.reason);
      };
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', leave, { once: true });
      line.add(enter);
    });

  const bounded = async <R>(signal: AbortSignal | undefined, call: () => Promise<R>): Promise<R> => {
    if (free > 0) free--;
    else await admitted(signal);
    try {
      return await call();
    } finally {
      const [next] = line;
      if (next) next();
      else free++;
    }
  };

  return {
    get: (resource, ref, options) => bounded(options?.signal, () => api.get(resource, ref, options)),
    list: (resource, options) => bounded(options?.signal, () => api.list(resource, options)),
    create: (resource, object, options) => bounded(options?.signal, () => api.create(resource, object, options)),
    delete: (resource, ref, options) => bounded(options?.signal, () => api.delete(resource, ref, options)),
  };
}
