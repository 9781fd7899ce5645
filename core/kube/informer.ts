import { unlessAborted } from '../abort.ts';
import { defined } from '../defined.ts';
import type { Clock, Logger, Random } from '../runtime.ts';
import { type CachedObject, type Change, type IndexFunction, keyOf, ObjectCache } from './cache.ts';
import { Reflector } from './reflector.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

interface CommonOptions<T extends KubeObject, C extends CachedObject> {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  resource: Resource<T>;
  /**
   * Namespaces to watch one by one, for rights that are granted by namespace. Default: one watch of all namespaces.
   */
  namespaces?: readonly string[];
  labelSelector?: string;
  fieldSelector?: string;
  indexes?: Record<string, IndexFunction<C>>;
  /** Returns false for an object that is not needed (any more): it is treated as deleted. */
  keep?: (object: C) => boolean;
  /**
   * Handler of a namespace that is considered closed because of this error, or open again. The objects it last showed stay
   * in the cache.
   */
  onClosed?: (namespace: string, closed: Error | undefined) => void;
  /** Handler of news about which objects there are: after a first list, and after `onClosed`. */
  onKnown?: () => void;
  /** Time without any event or bookmark after which a watch is considered dead; milliseconds, default 120 s. */
  silentMs?: number;
}

interface Transform<T extends KubeObject, C> {
  /** Converts an object to the form that is cached, so that bodies that are never read take no memory. */
  transform: (object: Stored<T>) => C;
  /** Makes the replacement of an object for which `transform` throws. */
  unreadable: (object: Stored<T>, error: unknown) => C;
}

/** Options of an informer. A transform to another type is required, and optional where objects are cached as they are. */
export type InformerOptions<T extends KubeObject, C extends CachedObject = Stored<T>> = CommonOptions<T, C> &
  (Stored<T> extends C ? Partial<Transform<T, C>> : Transform<T, C>);

/** Handlers of changes, called after the cache has changed. An error that one throws is logged and has no other effect. */
export interface Handler<C extends CachedObject> {
  add?(object: C): void;
  update?(object: C, old: C): void;
  delete?(object: C): void;
}

/** The API server sends a bookmark about once a minute. */
const SILENT_MS = 120_000;

interface Scope<T extends KubeObject, C extends CachedObject> {
  cache: ObjectCache<C>;
  reflector: Reflector<T, C>;
  synced: boolean;
}

/**
 * Cache of one resource that follows the API server until stopped. `T` is the kind, `C` the form in which its objects
 * are cached. They are shared: do not change them.
 */
export class Informer<T extends KubeObject, C extends CachedObject = Stored<T>> {
  readonly #options: InformerOptions<T, C>;
  readonly #handlers: Handler<C>[] = [];
  readonly #scopes = new Map<string | undefined, Scope<T, C>>();
  readonly #transform: (object: Stored<T>) => C;
  readonly #stopped = new AbortController();
  #waiting: { resolve: () => void; reject: (reason: unknown) => void }[] = [];
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: InformerOptions<T, C>) {
    this.#options = options;
    // The options require both functions where an object as it is has not the type of a cached one.
    const asItIs = (object: Stored<T>) => object as unknown as C;
    this.#transform = this.#guarded('transform', options.transform ?? asItIs, options.unreadable ?? asItIs);
    for (const namespace of options.namespaces ?? [undefined]) this.#scopes.set(namespace, this.#scope(namespace));
  }

  get resource(): Resource<T> {
    return this.#options.resource;
  }

  /** Adds a handler. After the start it is called for later changes only. */
  addHandler(handler: Handler<C>): void {
    this.#handlers.push(handler);
  }

  start(): void {
    this.#running = Promise.all([...this.#scopes.values()].map(({ reflector }) => reflector.run(this.#stopped.signal)));
  }

  /** Ends the watches; resolves when nothing runs any more. The cache stays readable. */
  async stop(): Promise<void> {
    const reason = new Error(`the informer of ${this.#options.resource.plural} was stopped`);
    this.#stopped.abort(reason);
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
    await this.#running;
  }

  get isSynced(): boolean {
    return this.#open().every(({ synced }) => synced);
  }

  /** Returns the error for which the namespace is considered closed: it may not be read, or does not exist. */
  closed(namespace: string): Error | undefined {
    return this.#scopeOf(namespace)?.reflector.closed;
  }

  /**
   * Resolves once the whole set has been listed, without namespaces that are closed. Rejects when the informer is
   * stopped or the signal aborts before.
   */
  synced(signal?: AbortSignal): Promise<void> {
    if (this.isSynced) return Promise.resolve();
    if (this.#stopped.signal.aborted) return Promise.reject(this.#stopped.signal.reason);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      this.#waiting.push({ resolve, reject });
    });
  }

  /** Reads the whole set anew, independent of the watch; resolves once it is in the cache. */
  async relist(signal: AbortSignal): Promise<void> {
    const stopped = this.#stopped.signal;
    for (const end of [signal, stopped]) end.throwIfAborted();
    const lists = [...this.#scopes.values()].map(({ reflector }) => reflector.relist());
    await unlessAborted(unlessAborted(Promise.all(lists), signal), stopped);
  }

  /**
   * Milliseconds since the cache was last known to equal the server's state; Infinity before the first list. Closed
   * namespaces do not count while others are open.
   */
  get staleness(): number {
    return this.#stalenessOf(this.#open());
  }

  /** Staleness of one namespace, closed or not. */
  stalenessIn(namespace: string): number {
    const scope = this.#scopeOf(namespace);
    return this.#stalenessOf(scope ? [scope] : []);
  }

  #stalenessOf(scopes: Scope<T, C>[]): number {
    return this.#options.clock.monotonic() - Math.min(...scopes.map(({ reflector }) => reflector.freshAt));
  }

  #open(): Scope<T, C>[] {
    const all = [...this.#scopes.values()];
    const open = all.filter(({ reflector }) => !reflector.closed);
    return open.length > 0 ? open : all;
  }

  /** Error that keeps the informer from following the server, for a readiness check or a person. */
  get problem(): Error | undefined {
    for (const { reflector } of this.#scopes.values()) if (reflector.problem) return reflector.problem;
    return undefined;
  }

  /** Newest resourceVersion that the server has shown; undefined before the first list. */
  position(namespace?: string): string | undefined {
    return this.#scopeOf(namespace)?.cache.position;
  }

  get(namespace: string | undefined, name: string): C | undefined {
    return this.#scopeOf(namespace)?.cache.get(keyOf(namespace === undefined ? { name } : { namespace, name }));
  }

  list(): C[] {
    return [...this.#scopes.values()].flatMap(({ cache }) => [...cache.values()]);
  }

  /** Returns the objects for which the index function `name` gave `value`. */
  byIndex(name: string, value: string): C[] {
    return [...this.#scopes.values()].flatMap(({ cache }) => cache.byIndex(name, value));
  }

  /** Drops the objects under this index value that `keep` no longer accepts, without calling handlers. */
  prune(name: string, value: string): void {
    for (const { cache } of this.#scopes.values()) cache.prune(name, value);
  }

  /** Applies the result of a client's own write, so that the writer sees it before its event comes. */
  apply(object: Stored<T>): void {
    const scope = this.#scopeOf(object.metadata.namespace);
    if (scope !== undefined) this.#emit(scope.cache.apply(this.#transform(object)));
  }

  #scopeOf(namespace: string | undefined): Scope<T, C> | undefined {
    return this.#options.namespaces === undefined ? this.#scopes.get(undefined) : this.#scopes.get(namespace);
  }

  #scope(namespace: string | undefined): Scope<T, C> {
    const { api, clock, random, log, resource, labelSelector, fieldSelector, silentMs = SILENT_MS } = this.#options;
    const indexes = Object.entries(this.#options.indexes ?? {}).map(
      ([name, of]) => [name, this.#guarded(`index ${name}`, of, () => [])] as const,
    );
    const keep = this.#guarded('keep', this.#options.keep ?? (() => true), () => true);
    const cache = new ObjectCache<C>(Object.fromEntries(indexes), keep);
    const reflector = new Reflector<T, C>({
      api,
      clock,
      random,
      log,
      resource,
      ...defined({ namespace, labelSelector, fieldSelector }),
      transform: this.#transform,
      cache,
      silentMs,
      onChanges: (changes) => this.#emit(changes),
      onSynced: () => {
        const isNew = !scope.synced;
        scope.synced = true;
        this.#notifySynced();
        if (isNew) this.#options.onKnown?.();
      },
      onClosed: (closed) => {
        this.#notifySynced();
        this.#options.onClosed?.(namespace as string, closed);
        this.#options.onKnown?.();
      },
    });
    const scope = { cache, reflector, synced: false };
    return scope;
  }

  #notifySynced(): void {
    if (this.isSynced) for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #emit(changes: Change<C>[]): void {
    for (const change of changes) {
      for (const handler of this.#handlers) {
        try {
          if (change.type === 'add') handler.add?.(change.object);
          else if (change.type === 'update') handler.update?.(change.object, change.old);
          else handler.delete?.(change.object);
        } catch (error) {
          const { namespace, name } = change.object.metadata;
          const facts = { resource: this.#options.resource.plural, namespace, name, change: change.type, err: error };
          this.#options.log.error(facts, 'handler of an informer failed');
        }
      }
    }
  }

  /** Catches errors of a caller's function: one bad object must not end the watch of all others. */
  #guarded<O extends CachedObject, R>(
    what: string,
    fn: (object: O) => R,
    otherwise: (object: O, error: unknown) => R,
  ): (object: O) => R {
    return (object) => {
      try {
        return fn(object);
      } catch (error) {
        const { namespace, name } = object.metadata;
        const facts = { resource: this.#options.resource.plural, namespace, name, what, err: error };
        this.#options.log.error(facts, 'function of an informer failed');
        return otherwise(object, error);
      }
    };
  }
}
