import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import { backoffMs } from './backoff.ts';
import type { Change, ObjectCache } from './cache.ts';
import { isClosed, isExpired, TransportError } from './errors.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

export interface ReflectorOptions<T extends KubeObject> {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  resource: Resource<T>;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  transform: (object: Stored<T>) => Stored<T>;
  cache: ObjectCache<T>;
  onChanges: (changes: Change<T>[]) => void;
  onSynced: () => void;
  /** A namespace of its own has been closed to it for long, by this error; undefined: it is open again. */
  onClosed: (closed: Error | undefined) => void;
  /** A watch without any event or bookmark for this long is taken for dead; milliseconds. */
  silentMs: number;
}

const PAGE_SIZE = 500;
const BACKOFF = { baseMs: 200, maxMs: 30_000 };
/** The server ends a watch after this time, spread so that not all come back at once; seconds. */
const WATCH_SECONDS = 300;
/** A namespace that answers 403 or 404 may just be being set up, or its rights be written anew. */
const CLOSED_MS = 30_000;
/** A watch that ended sooner, without an event, was no use: count it as a failure. */
const USEFUL_WATCH_MS = 5_000;

/**
 * Keeps a cache equal to the server's objects: list, then watch. A watch that the server ended in order is taken up
 * again where it stopped; after anything else the list is read anew, because the server may be another, with its
 * history gone or its versions set back.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  #freshAt = -Infinity;
  #problem: Error | undefined;
  /** Monotonic milliseconds. */
  #closingSince: number | undefined;
  #closed: Error | undefined;
  /** Those who wait for a list that begins after they have asked for it. */
  readonly #asking: (() => void)[] = [];
  #interrupt: () => void = () => {};

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
  }

  /** Monotonic milliseconds when the cache was last known to be the server's state. */
  get freshAt(): number {
    return this.#freshAt;
  }

  /** What keeps it from following the server, if anything does. */
  get problem(): Error | undefined {
    return this.#problem;
  }

  /** Why its namespace is taken for closed, if it is; it goes on trying. */
  get closed(): Error | undefined {
    return this.#closed;
  }

  /**
   * Ends the watch, which may be late, and lists anew at once. Resolves when the cache has everything that was there at the
   * time of the call, and nothing that was not, or when its namespace is taken for closed; a list that fails is tried
   * again as ever.
   */
  relist(): Promise<void> {
    return new Promise((resolve) => {
      this.#asking.push(resolve);
      this.#interrupt();
    });
  }

  /** Runs until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, resource, namespace } = this.#options;
    let failures = 0;
    let listed = false;
    while (!signal.aborted) {
      const asked = new AbortController();
      this.#interrupt = () => asked.abort(new Error(`a new list of ${resource.plural} was asked for`));
      const either = AbortSignal.any([signal, asked.signal]);
      try {
        if (!listed || this.#asking.length > 0) await this.#list(signal);
        listed = true;
        const watching = clock.monotonic();
        const useful = await this.#watch(either, () => {
          failures = 0;
        }).catch((error) => {
          // The server need send no bookmarks: a watch of what never changes is of use though nothing is ever heard of it.
          if (clock.monotonic() - watching >= USEFUL_WATCH_MS) failures = 0;
          throw error;
        });
        if (!useful) throw new TransportError(`the watch of ${resource.plural} ended at once`);
      } catch (error) {
        if (signal.aborted) return;
        if (asked.signal.aborted) continue;
        listed = false;
        failures++;
        this.#problem = error as Error;
        const waitMs = Math.min(backoffMs(failures, BACKOFF, random), this.#closesIn(error));
        const facts = {
          resource: resource.plural,
          namespace,
          failures,
          waitMs: Math.round(waitMs),
          err: (error as Error).message,
        };
        if (isExpired(error) || failures < 3 || this.#closed) log.info(facts, 'watch is started anew');
        else log.warn(facts, 'watch is started anew');
        await delay(clock, waitMs, either).catch(() => {});
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    const asking = this.#asking.length;
    // A long list can outlive its continue token: then it is read in one piece.
    const { objects, version } = await this.#pages(PAGE_SIZE, signal).catch((error) => {
      if (!isExpired(error)) throw error;
      return this.#pages(undefined, signal);
    });
    if (signal.aborted) return;
    const changes = this.#options.cache.replaceAll(objects, version);
    this.#freshAt = startedAt;
    this.#problem = undefined;
    this.#closingSince = undefined;
    this.#options.onChanges(changes);
    this.#options.onSynced();
    if (this.#closed) {
      this.#closed = undefined;
      this.#options.onClosed(undefined);
    }
    for (const tell of this.#asking.splice(0, asking)) tell();
  }

  /** Milliseconds until its namespace is to be taken for closed, as far as that is in sight; it is when they are over. */
  #closesIn(error: unknown): number {
    const { clock, namespace } = this.#options;
    if (namespace === undefined || !isClosed(error)) return Number.POSITIVE_INFINITY;
    this.#closingSince ??= clock.monotonic();
    const leftMs = this.#closingSince + CLOSED_MS - clock.monotonic();
    if (leftMs > 0) return leftMs;
    const isNew = !this.#closed;
    this.#closed = error as Error;
    if (isNew) this.#options.onClosed(this.#closed);
    for (const tell of this.#asking.splice(0)) tell();
    return Number.POSITIVE_INFINITY;
  }

  async #pages(limit: number | undefined, signal: AbortSignal): Promise<{ objects: Stored<T>[]; version: string }> {
    const { api, resource, transform } = this.#options;
    const objects: Stored<T>[] = [];
    let version: string | undefined;
    let token: string | undefined;
    do {
      const page = await api.list(resource, {
        ...this.#scope(),
        ...(limit === undefined ? {} : { limit }),
        ...(token === undefined ? {} : { continue: token }),
        signal,
      });
      version ??= page.metadata.resourceVersion;
      token = page.metadata.continue || undefined;
      for (const item of page.items) objects.push(transform(item));
    } while (token !== undefined);
    return { objects, version };
  }

  /** Resolves when the server ended the watch in order: with true if it was of use. */
  async #watch(signal: AbortSignal, onAlive: () => void): Promise<boolean> {
    const { api, cache, clock, random, resource, transform, onChanges, silentMs } = this.#options;
    signal.throwIfAborted();
    const startedAt = clock.monotonic();
    const connection = new AbortController();
    const onAbort = () => connection.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    let cancel: () => void = () => {};
    const watchSilence = () => {
      cancel();
      cancel = clock.setTimer(silentMs, () =>
        connection.abort(new TransportError(`the watch of ${resource.plural} was silent for ${silentMs} ms`)),
      );
    };
    watchSilence();
    let alive = false;
    try {
      const events = api.watch(resource, {
        ...this.#scope(),
        resourceVersion: cache.position!,
        timeoutSeconds: Math.round(WATCH_SECONDS * (1 + random.uniform())),
        signal: connection.signal,
      });
      for await (const event of events) {
        connection.signal.throwIfAborted();
        const version = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
        if (cache.isBehind(version)) {
          throw new TransportError(`the watch of ${resource.plural} went back from ${cache.position} to ${version}`);
        }
        watchSilence();
        this.#freshAt = clock.monotonic();
        alive = true;
        onAlive();
        if (event.type === 'BOOKMARK') cache.advance(version);
        else if (event.type === 'DELETED') onChanges(cache.observeDeleted(transform(event.object)));
        else onChanges(cache.observe(transform(event.object)));
      }
      connection.signal.throwIfAborted();
      return alive || clock.monotonic() - startedAt >= USEFUL_WATCH_MS;
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #scope(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }
}
