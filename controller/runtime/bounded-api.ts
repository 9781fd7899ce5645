import type { KubeApi } from '../../core/kube/types.ts';

/**
 * Limits concurrent calls that many sessions may make at the same moment, such as commits once a store is back. Calls
 * over the limit wait in a queue and leave it when their signal aborts. Other calls of the controller, its lease above
 * all, never wait behind them.
 */
export function boundedApi(api: KubeApi, most: number): Pick<KubeApi, 'get' | 'list' | 'create' | 'delete'> {
  const queue = new Set<() => void>();
  let free = most;

  const admitted = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      const start = () => {
        queue.delete(start);
        signal?.removeEventListener('abort', abort);
        resolve();
      };
      const abort = () => {
        queue.delete(start);
        reject(signal?.reason);
      };
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', abort, { once: true });
      queue.add(start);
    });

  const bounded = async <R>(signal: AbortSignal | undefined, call: () => Promise<R>): Promise<R> => {
    if (free > 0) free--;
    else await admitted(signal);
    try {
      return await call();
    } finally {
      const [next] = queue;
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
