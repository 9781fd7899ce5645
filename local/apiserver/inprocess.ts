import type {
  CallOptions,
  DeleteOptions,
  KubeList,
  KubeObject,
  ListOptions,
  ObjectRef,
  PatchType,
  Resource,
  Stored,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../../core/kube/types.ts';
import { unknownPath } from './errors.ts';
import { type ApiObject, clone } from './object.ts';
import { patcher } from './patch/patch.ts';
import { deleteObject } from './registry/deletion.ts';
import { listObjects, parseVersion, selectorOf } from './registry/listing.ts';
import type { Registry, WriteRequest } from './registry/registry.ts';
import type { ResourceType } from './registry/types.ts';
import { watchObjects } from './registry/watching.ts';
import type { Store } from './types.ts';

const mediaTypes: Record<Exclude<PatchType, 'apply'>, string> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** API for a caller in the same process, as the node's own user. */
export class InProcessApi implements Store {
  readonly #registry: Registry;
  readonly #request: WriteRequest = {
    user: { username: 'system:node:local', groups: ['system:masters', 'system:nodes'] },
    fieldValidation: 'Strict',
    dryRun: false,
    fieldManager: 'kubelet',
    warn() {},
  };

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, _options?: CallOptions): Promise<Stored<T>> {
    return this.#registry.get(this.#type(resource), ref.namespace, ref.name) as unknown as Stored<T>;
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    const type = this.#type(resource);
    const selector = selectorOf(type, options.labelSelector ?? null, options.fieldSelector ?? null);
    const { namespace, limit, resourceVersion } = options;
    const result = listObjects(this.#registry, type, namespace, {
      selector,
      limit,
      continue: options.continue,
      resourceVersion,
    });
    return result as unknown as KubeList<T>;
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, _options?: WriteOptions): Promise<Stored<T>> {
    const type = this.#type(resource);
    const body = clone(object);
    return this.#registry.create(type, object.metadata.namespace, body, this.#request) as unknown as Stored<T>;
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<Stored<T>> {
    const { namespace, name } = object.metadata;
    return this.#update(resource, { ...(namespace ? { namespace } : {}), name }, () => clone(object), options, true);
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: object,
    options: WriteOptions & { type?: PatchType } = {},
  ): Promise<Stored<T>> {
    const kind = options.type ?? 'merge';
    if (kind === 'apply') throw unknownPath();
    const produce = patcher(this.#type(resource), mediaTypes[kind], clone(patch));
    return this.#update(resource, ref, produce, options, false);
  }

  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<void> {
    const { uid, resourceVersion, gracePeriodSeconds, propagationPolicy } = options;
    deleteObject(this.#registry, this.#type(resource), ref.namespace, ref.name, {
      preconditions: { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) },
      gracePeriodSeconds,
      propagationPolicy,
      dryRun: false,
    });
  }

  async *watch<T extends KubeObject>(resource: Resource<T>, options: WatchOptions): AsyncIterable<WatchEvent<T>> {
    const type = this.#type(resource);
    const selector = selectorOf(type, options.labelSelector ?? null, options.fieldSelector ?? null);
    const version = parseVersion(options.resourceVersion);
    const waiting: WatchEvent<T>[] = [];
    let wake = Promise.withResolvers<void>();
    const stop = watchObjects(this.#registry.store, type, options.namespace, selector, version, (kind, object) => {
      waiting.push({ type: kind, object: object as unknown as Stored<T> });
      wake.resolve();
    });
    const onAbort = () => wake.resolve();
    options.signal.addEventListener('abort', onAbort, { once: true });
    try {
      while (!options.signal.aborted) {
        yield* waiting.splice(0);
        if (waiting.length > 0 || options.signal.aborted) continue;
        await wake.promise;
        wake = Promise.withResolvers();
      }
    } finally {
      stop();
      options.signal.removeEventListener('abort', onAbort);
    }
  }

  #update<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    produce: (current: ApiObject) => unknown,
    options: WriteOptions | undefined,
    replace: boolean,
  ): Stored<T> {
    const subresource = options?.subresource === 'status' ? 'status' : undefined;
    const object = this.#registry.update(this.#type(resource), ref.namespace, ref.name, produce, this.#request, {
      subresource,
      replace,
    });
    return object as unknown as Stored<T>;
  }

  #type(resource: Resource): ResourceType {
    const type = this.#registry.catalogue.find(resource.group, resource.version, resource.plural);
    if (!type) throw unknownPath();
    return type;
  }
}
