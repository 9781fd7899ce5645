import { expired } from '../errors.ts';
import { type ApiObject, freeze } from '../object.ts';

/** A write: the value of a key from `version` on. For a deletion `object` is the last state, with the new version. */
export interface Change {
  version: number;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Name of the collection: `<plural>.<group>`. */
  storage: string;
  key: string;
  object: ApiObject;
  previous?: ApiObject;
  /** Size of the object as JSON, bytes. */
  size: number;
}

/** Sink of writes before they take effect; throws when they cannot be kept. */
export interface Sink {
  append(change: Change): void;
}

/** Limit of the history in bytes, for any number of changes. */
const maxHistoryBytes = 64 * 1024 * 1024;

export interface StoreContents {
  version: number;
  collections: Map<string, Map<string, ApiObject>>;
}

export const keyOf = (namespace: string | undefined, name: string) => `${namespace ?? ''}/${name}`;

/**
 * Objects of all kinds under one version counter, with the latest changes as history. Everything is synchronous: a
 * check and the write after it cannot be separated by another request.
 */
export class VersionedStore {
  #version: number;
  readonly #collections: Map<string, Map<string, ApiObject>>;
  #history: Change[] = [];
  #historyBytes = 0;
  readonly #sizes = new WeakMap<ApiObject, number>();
  /** Version after which changes are in the history. */
  #horizon: number;
  readonly #historyLength: number;
  readonly #sink: Sink | undefined;
  readonly #listeners = new Set<(change: Change) => void>();

  constructor(options: { historyLength: number; contents?: StoreContents; sink?: Sink }) {
    this.#historyLength = options.historyLength;
    this.#collections = options.contents?.collections ?? new Map();
    this.#version = options.contents?.version ?? 1;
    this.#horizon = this.#version;
    this.#sink = options.sink;
    for (const collection of this.#collections.values()) for (const object of collection.values()) freeze(object);
  }

  get version(): number {
    return this.#version;
  }

  contents(): StoreContents {
    return { version: this.#version, collections: this.#collections };
  }

  get(storage: string, namespace: string | undefined, name: string): ApiObject | undefined {
    return this.#collections.get(storage)?.get(keyOf(namespace, name));
  }

  /** Returns the objects sorted by namespace and name. */
  list(storage: string, namespace?: string): ApiObject[] {
    return sorted(this.#collections.get(storage) ?? new Map(), namespace);
  }

  /** Returns the list as it was at `version`; throws 410 when that is no longer known. */
  listAt(storage: string, namespace: string | undefined, version: number): ApiObject[] {
    if (version === this.#version) return this.list(storage, namespace);
    if (version < this.#horizon) throw tooOld(version, this.#horizon);
    const collection = new Map(this.#collections.get(storage) ?? []);
    for (let i = this.#history.length - 1; i >= 0; i--) {
      const change = this.#history[i]!;
      if (change.version <= version) break;
      if (change.storage !== storage) continue;
      if (change.previous) collection.set(change.key, change.previous);
      else collection.delete(change.key);
    }
    return sorted(collection, namespace);
  }

  /** Returns every storage with objects in this namespace. */
  storagesIn(namespace: string): string[] {
    const prefix = `${namespace}/`;
    return [...this.#collections].flatMap(([storage, objects]) =>
      [...objects.keys()].some((key) => key.startsWith(prefix)) ? [storage] : [],
    );
  }

  /** Stores the object under a new version, which is written into its metadata. `size` is that of its JSON, bytes. */
  put(storage: string, object: ApiObject, size: number): ApiObject {
    const key = keyOf(object.metadata.namespace, object.metadata.name);
    const previous = this.#collections.get(storage)?.get(key);
    return this.#commit({
      type: previous ? 'MODIFIED' : 'ADDED',
      storage,
      key,
      object,
      size,
      ...(previous ? { previous } : {}),
    });
  }

  remove(storage: string, object: ApiObject): ApiObject {
    const key = keyOf(object.metadata.namespace, object.metadata.name);
    const previous = this.#collections.get(storage)?.get(key);
    const size = (previous && this.#sizes.get(previous)) ?? 0;
    return this.#commit({ type: 'DELETED', storage, key, object, size, ...(previous ? { previous } : {}) });
  }

  /** Returns the changes of a collection after `version`, oldest first; throws 410 when some are no longer known. */
  changesSince(storage: string, version: number): Change[] {
    if (version < this.#horizon) throw tooOld(version, this.#horizon);
    return this.#history.filter((change) => change.version > version && change.storage === storage);
  }

  /** Calls `listener` for every change, in order, within the write. Returns a function that ends it. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Drops the history. */
  compact(): void {
    this.#history = [];
    this.#historyBytes = 0;
    this.#horizon = this.#version;
  }

  #commit(write: Omit<Change, 'version'>): ApiObject {
    const version = this.#version + 1;
    const object = freeze({
      ...write.object,
      metadata: { ...write.object.metadata, resourceVersion: String(version) },
    });
    const change: Change = { ...write, version, object };
    this.#sink?.append(change);
    this.#version = version;
    let collection = this.#collections.get(write.storage);
    if (!collection) {
      collection = new Map();
      this.#collections.set(write.storage, collection);
    }
    if (write.type === 'DELETED') collection.delete(write.key);
    else collection.set(write.key, object);
    this.#sizes.set(object, write.size);
    this.#remember(change);
    for (const listener of this.#listeners) listener(change);
    return object;
  }

  #remember(change: Change): void {
    this.#history.push(change);
    this.#historyBytes += change.size;
    if (this.#history.length <= this.#historyLength * 2 && this.#historyBytes <= maxHistoryBytes) return;
    // Half of it is dropped at a time, so that most writes move nothing.
    this.#history = this.#history.slice(Math.ceil(this.#history.length / 2));
    this.#historyBytes = this.#history.reduce((sum, { size }) => sum + size, 0);
    this.#horizon = (this.#history[0]?.version ?? change.version + 1) - 1;
  }
}

function sorted(collection: Map<string, ApiObject>, namespace: string | undefined): ApiObject[] {
  const prefix = namespace === undefined ? '' : `${namespace}/`;
  return [...collection]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, object]) => object);
}

const tooOld = (version: number, oldest: number) => expired(`too old resource version: ${version} (${oldest})`);
