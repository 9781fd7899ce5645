import { anySignal, onAbort } from '../abort.ts';
import { defined } from '../defined.ts';
import { type Clock, delay, type Logger, type Random } from '../runtime.ts';
import { backoffMs } from './backoff.ts';
import type { CachedObject, Change, ObjectCache } from './cache.ts';
import { isClosed, isExpired, TransportError } from './errors.ts';
import { eachPage } from './pages.ts';
import type { KubeApi, KubeObject, Resource, Stored } from './types.ts';

export interface ReflectorOptions<T extends KubeObject, C extends CachedObject> {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  resource: Resource<T>;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  transform: (object: Stored<T>) => C;
  cache: ObjectCache<C>;
  onChanges: (changes: Change<C>[]) => void;
  onSynced: () => void;
  /**
   * Handler of the error when the reflector's own namespace is considered closed; of undefined when it is open
   * again.
   */
  onClosed: (closed: Error | undefined) => void;
  /** Time without any event or bookmark after which a watch is considered dead; milliseconds. */
  silentMs: number;
}

const PAGE_SIZE = 500;
const BACKOFF = { baseMs: 200, maxMs: 30_000 };
/** Time after which the server ends a watch, spread so that watches do not all come back at once; seconds. */
const WATCH_SECONDS = 300;
/** Time for which 403 or 404 is tolerated: the namespace may be in creation, or its rights may be rewritten. */
const CLOSED_MS = 30_000;
/** A watch that ended sooner, without an event, counts as a failure. */
const USEFUL_WATCH_MS = 5_000;

/**
 * Keeps a cache equal to the server's objects: list, then watch. A watch that the server ended in order is resumed
 * where it stopped. After anything else the set is listed anew: the server may be another one, or its history or
 * versions may have been reset.
 */
export class Reflector<T extends KubeObject, C extends CachedObject> {
  readonly #options: ReflectorOptions<T, C>;
  #freshAt = -Infinity;
  #problem: Error | undefined;
  /** Monotonic milliseconds at which the namespace first looked closed. */
  #closingSince: number | undefined;
  #closed: Error | undefined;
  /** Callers that wait for a list that begins after their call. */
  readonly #asking: (() => void)[] = [];
  #interrupt: () => void = () => {};

  constructor(options: ReflectorOptions<T, C>) {
    this.#options = options;
  }

  /** Monotonic milliseconds when the cache was last known to equal the server's state. */
  get freshAt(): number {
    return this.#freshAt;
  }

  /** Error that keeps the reflector from following the server. */
  get problem(): Error | undefined {
    return this.#problem;
  }

  /** Error for which the namespace is considered closed; the reflector keeps trying. */
  get closed(): Error | undefined {
    return this.#closed;
  }

  /**
   * Ends the watch, which may lag, and lists anew at once. Resolves when the cache equals the server's state at the
   * time of the call or later, or when the namespace is considered closed. A failed list is retried as usual.
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
      const either = anySignal(signal, asked.signal);
      try {
        if (!listed || this.#asking.length > 0) await this.#list(signal);
        listed = true;
        const watching = clock.monotonic();
        const useful = await this.#watch(either, () => {
          failures = 0;
        }).catch((error) => {
          // The server need not send bookmarks: a long silent watch of objects that never change is still useful.
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
        if (isExpired(error) || failures < 3 || this.#closed) log.info(facts, 'watch restarted');
        else log.warn(facts, 'watch restarted');
        await delay(clock, waitMs, either).catch(() => {});
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    const asking = this.#asking.length;
    // A long list can outlive its continue token: then it is read in one request.
    const { objects, version } = await this.#pages(PAGE_SIZE, signal).catch((error) => {
      if (!isExpired(error)) throw error;
      return this.#pages(undefined, signal);
    });
    if (signal.aborted) return;
    const changes = this.#options.cache.replaceAll(objects, version);
    this.#freshAt = startedAt;
    this.#problem = undefined;
    this.#closingSince = undefined;
    const wasClosed = this.#closed !== undefined;
    this.#closed = undefined;
    // A handler of a change may read the cache at once, which then has to count as synced and open.
    this.#options.onSynced();
    this.#options.onChanges(changes);
    if (wasClosed) this.#options.onClosed(undefined);
    for (const answer of this.#asking.splice(0, asking)) answer();
  }

  /**
   * Returns the milliseconds until the namespace is considered closed; Infinity when that is not foreseeable. Closes
   * the namespace when none are left.
   */
  #closesIn(error: unknown): number {
    const { clock, namespace } = this.#options;
    if (namespace === undefined || !isClosed(error)) return Number.POSITIVE_INFINITY;
    this.#closingSince ??= clock.monotonic();
    const leftMs = this.#closingSince + CLOSED_MS - clock.monotonic();
    if (leftMs > 0) return leftMs;
    const isNew = !this.#closed;
    this.#closed = error as Error;
    if (isNew) this.#options.onClosed(this.#closed);
    for (const answer of this.#asking.splice(0)) answer();
    return Number.POSITIVE_INFINITY;
  }

  async #pages(limit: number | undefined, signal: AbortSignal): Promise<{ objects: C[]; version: string }> {
    const { api, resource, transform } = this.#options;
    const objects: C[] = [];
    const options = { ...this.#scope(), ...defined({ limit }), signal };
    const version = await eachPage(api, resource, options, ({ items }) => {
      for (const item of items) objects.push(transform(item));
    });
    return { objects, version };
  }

  /** Resolves when the server ended the watch in order; with true if the watch was useful. */
  async #watch(signal: AbortSignal, onAlive: () => void): Promise<boolean> {
    const { api, cache, clock, random, resource, transform, onChanges, silentMs } = this.#options;
    signal.throwIfAborted();
    const startedAt = clock.monotonic();
    const connection = new AbortController();
    const remove = onAbort(signal, () => connection.abort(signal.reason));
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
        // The result of a client's own write came first. To transform it again may take milliseconds.
        else if (cache.isKnown(event.object)) cache.advance(version);
        else onChanges(cache.observe(transform(event.object)));
      }
      connection.signal.throwIfAborted();
      return alive || clock.monotonic() - startedAt >= USEFUL_WATCH_MS;
    } finally {
      cancel();
      remove();
    }
  }

  #scope(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...defined({ namespace, labelSelector, fieldSelector }),
    };
  }
}
