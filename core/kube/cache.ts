import { compareVersions } from './resource-version.ts';
import type { ObjectRef, ServerMeta } from './types.ts';

/** Metadata that a cache needs of every object in it. */
export interface CachedObject {
  metadata: Pick<ServerMeta, 'namespace' | 'name' | 'uid' | 'resourceVersion'>;
}

/** Returns `namespace/name`, or `name` of a cluster-scoped object. */
export function keyOf({ namespace, name }: ObjectRef): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** Returns the reference to a namespaced object that `keyOf` made the key from. */
export function refOf(key: string): Required<ObjectRef> {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

export type IndexFunction<C extends CachedObject> = (object: C) => readonly string[];

export type Change<C extends CachedObject> =
  | { type: 'add'; object: C }
  | { type: 'update'; object: C; old: C }
  | { type: 'delete'; object: C };

/**
 * Cache of the objects that one list and watch covers. An object only moves forward, because the result of a client's
 * own write may come before or after its event. Every method that changes something returns the changes.
 */
export class ObjectCache<C extends CachedObject> {
  readonly #items = new Map<string, C>();
  readonly #indexes = new Map<string, { of: IndexFunction<C>; keys: Map<string, Set<string>> }>();
  readonly #keep: (object: C) => boolean;
  /** Newest version that the server has shown by list or watch. */
  #position: string | undefined;
  /**
   * UID → version at which an object was dropped. Entries stay until the server has shown that version, because
   * everything shown before is older.
   */
  readonly #dropped = new Map<string, string>();

  /** An object for which `keep` returns false is treated as deleted. */
  constructor(indexes: Record<string, IndexFunction<C>> = {}, keep: (object: C) => boolean = () => true) {
    this.#keep = keep;
    for (const [name, of] of Object.entries(indexes)) this.#indexes.set(name, { of, keys: new Map() });
  }

  get position(): string | undefined {
    return this.#position;
  }

  get size(): number {
    return this.#items.size;
  }

  get(key: string): C | undefined {
    return this.#items.get(key);
  }

  values(): IterableIterator<C> {
    return this.#items.values();
  }

  byIndex(name: string, value: string): C[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`there is no index ${JSON.stringify(name)}`);
    return [...(index.keys.get(value) ?? [])].map((key) => this.#items.get(key)!);
  }

  /**
   * True if `version` is older than what the server has shown: the server was restored from a backup, or it is another
   * server.
   */
  isBehind(version: string): boolean {
    return (compareVersions(version, this.#position) ?? 0) < 0;
  }

  /** Reports whether the cache has the object in this version or a later one. An event of it changes nothing. */
  isKnown({ metadata }: CachedObject): boolean {
    const known = this.#items.get(keyOf(metadata));
    return (compareVersions(metadata.resourceVersion, known?.metadata.resourceVersion) ?? 1) <= 0;
  }

  /** Records that the server's history has reached `version`. */
  advance(version: string): void {
    this.#position = version;
    for (const [uid, dropped] of this.#dropped) {
      if ((compareVersions(dropped, version) ?? 0) > 0) break;
      this.#dropped.delete(uid);
    }
  }

  /**
   * Replaces the whole set with the list read at `version`. An object that is not in it is gone, unless our own write
   * created it after the list.
   */
  replaceAll(objects: readonly C[], version: string): Change<C>[] {
    const restarted = this.isBehind(version);
    const listed = new Set(objects.map((object) => keyOf(object.metadata)));
    if (restarted) this.#dropped.clear();
    this.advance(version);
    const changes: Change<C>[] = [];
    for (const [key, known] of [...this.#items]) {
      const later = !restarted && (compareVersions(known.metadata.resourceVersion, version) ?? -1) > 0;
      if (!listed.has(key) && !later) changes.push(...this.#remove(key, known));
    }
    for (const object of objects) changes.push(...(restarted ? this.#set(object) : this.#forward(object)));
    return changes;
  }

  /** Applies an ADDED or MODIFIED event. */
  observe(object: C): Change<C>[] {
    this.advance(object.metadata.resourceVersion);
    return this.#forward(object);
  }

  /** Applies a DELETED event; its object carries the version of the deletion. */
  observeDeleted(object: C): Change<C>[] {
    this.advance(object.metadata.resourceVersion);
    const key = keyOf(object.metadata);
    const known = this.#items.get(key);
    // A newer object with another uid was created by our own write after the deletion.
    const successor =
      known !== undefined &&
      known.metadata.uid !== object.metadata.uid &&
      (compareVersions(known.metadata.resourceVersion, object.metadata.resourceVersion) ?? -1) > 0;
    return known === undefined || successor ? [] : this.#remove(key, known);
  }

  /**
   * Applies the result of a client's own write. An unknown object whose version the watch has already passed was
   * deleted since.
   */
  apply(object: C): Change<C>[] {
    const known = this.#items.has(keyOf(object.metadata));
    const passed = (compareVersions(object.metadata.resourceVersion, this.#position) ?? 1) <= 0;
    return !known && passed ? [] : this.#forward(object);
  }

  /** Drops the objects under `value` of index `name` that `keep` no longer accepts, without calling handlers. */
  prune(name: string, value: string): void {
    for (const object of this.byIndex(name, value)) {
      if (!this.#keep(object)) this.#drop(keyOf(object.metadata), object);
    }
  }

  #forward(object: C): Change<C>[] {
    const { uid, resourceVersion } = object.metadata;
    const dropped = this.#dropped.get(uid);
    if (dropped !== undefined && (compareVersions(resourceVersion, dropped) ?? 1) <= 0) return [];
    return this.isKnown(object) ? [] : this.#set(object);
  }

  #set(object: C): Change<C>[] {
    const key = keyOf(object.metadata);
    const old = this.#items.get(key);
    if (old !== undefined && old.metadata.uid !== object.metadata.uid) {
      return [...this.#remove(key, old), ...this.#set(object)];
    }
    if (!this.#keep(object)) return this.#drop(key, object);
    if (old !== undefined) this.#unindex(key, old);
    this.#items.set(key, object);
    for (const { of, keys } of this.#indexes.values()) {
      for (const value of of(object)) {
        const set = keys.get(value);
        if (set === undefined) keys.set(value, new Set([key]));
        else set.add(key);
      }
    }
    if (old === undefined) return [{ type: 'add', object }];
    return old.metadata.resourceVersion === object.metadata.resourceVersion ? [] : [{ type: 'update', object, old }];
  }

  /** Drops an object that is not needed any more, at this version. */
  #drop(key: string, { metadata: { uid, resourceVersion } }: C): Change<C>[] {
    if ((compareVersions(resourceVersion, this.#position) ?? 0) > 0) this.#dropped.set(uid, resourceVersion);
    const known = this.#items.get(key);
    return known === undefined ? [] : this.#remove(key, known);
  }

  #remove(key: string, known: C): Change<C>[] {
    this.#unindex(key, known);
    this.#items.delete(key);
    return [{ type: 'delete', object: known }];
  }

  #unindex(key: string, object: C): void {
    for (const { of, keys } of this.#indexes.values()) {
      for (const value of of(object)) {
        const set = keys.get(value);
        if (set?.delete(key) && set.size === 0) keys.delete(value);
      }
    }
  }
}
