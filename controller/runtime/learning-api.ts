import type { KubeApi, KubeObject, Resource, Stored } from '../../core/kube/types.ts';

/**
 * An API whose answers about single objects go into the caches at once. So whoever reads or writes an object need not think
 * of the caches, and the next decision knows at least as much as the last answer. `learn` must not throw. Lists are left out, as most of
 * what the sweeps list is not cached.
 */
export function learningApi(
  api: KubeApi,
  learn: <T extends KubeObject>(resource: Resource<T>, object: Stored<T>) => void,
): KubeApi {
  // The caller gets the client's own promise, so that it goes on at the same moment as without the caches.
  const learned = <T extends KubeObject>(resource: Resource<T>, answer: Promise<Stored<T>>): Promise<Stored<T>> => {
    answer.then(
      (object) => learn(resource, object),
      () => {},
    );
    return answer;
  };
  return {
    list: (resource, options) => api.list(resource, options),
    watch: (resource, options) => api.watch(resource, options),
    podLog: (ref, options) => api.podLog(ref, options),
    attach: (ref, options) => api.attach(ref, options),
    exec: (ref, options) => api.exec(ref, options),
    delete: (resource, ref, options) => api.delete(resource, ref, options),
    get: (resource, ref, options) => learned(resource, api.get(resource, ref, options)),
    create: (resource, object, options) => learned(resource, api.create(resource, object, options)),
    replace: (resource, object, options) => learned(resource, api.replace(resource, object, options)),
    patch: (resource, ref, patch, options) => learned(resource, api.patch(resource, ref, patch, options)),
  };
}
