import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import { backoffMs } from './backoff.ts';
import type { Change, ObjectCache } from './cache.ts';
import { isExpired, TransportError } from './errors.ts';
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
  /** A watch without any event or bookmark for this long is taken for dead; milliseconds. */
  silentMs: number;
}

const PAGE_SIZE = 500;
const BACKOFF = { baseMs: 200, maxMs: 30_000 };
/** The server ends a watch after this time, spread so that not all come back at once; seconds. */
const WATCH_SECONDS = 300;
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

  /** Runs until the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, resource, namespace } = this.#options;
    let failures = 0;
    let listed = false;
    while (!signal.aborted) {
      try {
        if (!listed) await this.#list(signal);
        listed = true;
        const useful = await this.#watch(signal, () => {
          failures = 0;
        });
        if (!useful) throw new TransportError(`the watch of ${resource.plural} ended at once`);
      } catch (error) {
        if (signal.aborted) return;
        listed = false;
        failures++;
        this.#problem = error as Error;
        const waitMs = backoffMs(failures, BACKOFF, random);
        const facts = {
          resource: resource.plural,
          namespace,
          failures,
          waitMs: Math.round(waitMs),
          err: (error as Error).message,
        };
        if (isExpired(error) || failures < 3) log.info(facts, 'watch is started anew');
        else log.warn(facts, 'watch is started anew');
        await delay(clock, waitMs, signal).catch(() => {});
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    // A long list can outlive its continue token: then it is read in one piece.
    const { objects, version } = await this.#pages(PAGE_SIZE, signal).catch((error) => {
      if (!isExpired(error)) throw error;
      return this.#pages(undefined, signal);
    });
    if (signal.aborted) return;
    const changes = this.#options.cache.replaceAll(objects, version);
    this.#freshAt = startedAt;
    this.#problem = undefined;
    this.#options.onChanges(changes);
    this.#options.onSynced();
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
