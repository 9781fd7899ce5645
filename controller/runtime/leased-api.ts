import type { CallOptions, KubeApi } from '../../core/kube/types.ts';

/** Maximum duration of a leader's write. A successor that took an expired lease waits this long. */
export const WRITE_DEADLINE_MS = 5_000;

/**
 * The API for a leader: its writes end before its lease can have passed to another holder, and nothing is sent to a pod
 * after that. `leftMs` is the certain rest of the lease in milliseconds; at 0 a write is refused.
 */
export function leasedApi(api: KubeApi, leftMs: () => number): KubeApi {
  const leased = <T extends CallOptions>(options?: T): T => {
    const left = leftMs();
    if (left <= 0) throw new NotLeadingError();
    return { ...options, deadlineMs: Math.min(options?.deadlineMs ?? WRITE_DEADLINE_MS, left) } as T;
  };
  return {
    get: (resource, ref, options) => api.get(resource, ref, options),
    list: (resource, options) => api.list(resource, options),
    watch: (resource, options) => api.watch(resource, options),
    podLog: (ref, options) => api.podLog(ref, options),
    attach: async (ref, options) => {
      // The first write to it would fail, and have it opened again at once.
      if (leftMs() <= 0) throw new NotLeadingError();
      const stream = await api.attach(ref, options);
      const write = async (data: Buffer | string) => {
        if (leftMs() <= 0) throw new NotLeadingError();
        return stream.write(data);
      };
      return {
        write,
        closeStdin: () => stream.closeStdin(),
        pause: () => stream.pause(),
        resume: () => stream.resume(),
        close: () => stream.close(),
        closed: stream.closed,
      };
    },
    exec: (ref, options) => api.exec(ref, options),
    create: async (resource, object, options) => api.create(resource, object, leased(options)),
    replace: async (resource, object, options) => api.replace(resource, object, leased(options)),
    patch: async (resource, ref, patch, options) => api.patch(resource, ref, patch, leased(options)),
    delete: async (resource, ref, options) => api.delete(resource, ref, leased(options)),
  };
}

/** The lease is no longer held: the write is left to the successor. */
export class NotLeadingError extends Error {
  readonly code = 'NotLeading';
  constructor() {
    super('this controller does not lead any more; its successor goes on');
  }
}
