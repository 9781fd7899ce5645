import type { KubeClient } from '../../core/kube/client.ts';
import type { KubeObject, Resource, Stored } from '../../core/kube/types.ts';

const LIMIT_MS = 120_000;

interface Sight<T> {
  /** Moment in which the event was read, by performance.now(). */
  at: number;
  object: Stored<T & KubeObject>;
}

interface Waiter<T> {
  check: (object: Stored<T & KubeObject>) => boolean;
  resolve: (sight: Sight<T>) => void;
  reject: (error: Error) => void;
}

/** Watch over a namespace that tells many waiters the moment in which their object is as they want it. */
export class Watched<T extends KubeObject> {
  readonly #waiters = new Map<string, Set<Waiter<T>>>();
  readonly #stop = new AbortController();
  #ended: Error | undefined;

  static async open<T extends KubeObject>(
    client: KubeClient,
    resource: Resource<T>,
    namespace: string,
  ): Promise<Watched<T>> {
    const { metadata } = await client.list(resource, { namespace, limit: 1 });
    const watched = new Watched<T>();
    void watched.#read(client, resource, namespace, metadata.resourceVersion);
    return watched;
  }

  /** Reads events, over several watches where the API server ends one, as it does when a kind is defined anew. */
  async #read(client: KubeClient, resource: Resource<T>, namespace: string, from: string): Promise<void> {
    let resourceVersion = from;
    let cause: unknown;
    try {
      while (!this.#stop.signal.aborted) {
        for await (const event of client.watch(resource, { namespace, resourceVersion, signal: this.#stop.signal })) {
          const at = performance.now();
          resourceVersion = event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
          if (event.type === 'BOOKMARK') continue;
          const { object } = event;
          for (const waiter of this.#waiters.get(object.metadata.name) ?? []) {
            if (waiter.check(object)) waiter.resolve({ at, object });
          }
        }
      }
    } catch (error) {
      cause = error;
    }
    this.#ended = new Error(`the watch of ${resource.plural} ended`, { cause });
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.reject(this.#ended);
  }

  /** Resolves when an event of the object named `name` satisfies `check`; call it before the object is changed. */
  async until(name: string, check: Waiter<T>['check'], limitMs = LIMIT_MS): Promise<Sight<T>> {
    if (this.#ended) throw this.#ended;
    const waiters = this.#waiters.get(name) ?? new Set();
    this.#waiters.set(name, waiters);
    let waiter: Waiter<T> | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Sight<T>>((resolve, reject) => {
        waiter = { check, resolve, reject };
        waiters.add(waiter);
        timer = setTimeout(() => reject(new Error(`${name} was not seen within ${limitMs / 1000} s`)), limitMs);
      });
    } finally {
      clearTimeout(timer);
      if (waiter) waiters.delete(waiter);
      if (waiters.size === 0) this.#waiters.delete(name);
    }
  }

  /** Milliseconds from before `act` until an object satisfies `check`. */
  async timed(
    name: string,
    act: () => Promise<unknown>,
    check: Waiter<T>['check'],
  ): Promise<{ ms: number; object: Stored<T> }> {
    const seen = this.until(name, check);
    // A failure of `act` is the one to tell.
    seen.catch(() => {});
    const started = performance.now();
    await act();
    const { at, object } = await seen;
    return { ms: at - started, object };
  }

  close(): void {
    this.#stop.abort(new Error('the watch was closed'));
  }
}
