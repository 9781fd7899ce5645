import type { StoredPod } from '../../core/kube/builtin.ts';

/** Functions of a part of the leader, one for each kind of change. Each is called as soon as the cache shows the change, and must not throw. */
export interface Watches {
  /** A session, or something that it depends on, was created, changed or deleted. `key` is its `namespace/name`. */
  session?(key: string): void;
  pod?(pod: StoredPod, gone: boolean): void;
  /** A class was created, changed or deleted. The calls for its sessions come afterwards. */
  class?(name: string): void;
  networkPolicy?(namespace: string, name: string): void;
  environment?(namespace: string, name: string): void;
  pool?(namespace: string, name: string): void;
  /** It has become known which SessionPools there are. */
  poolsKnown?(): void;
  /** Labels of namespaces may have changed, or a namespace can be read again, or no longer. */
  namespaces?(): void;
}

/** Those who watch, called in the order in which they came. */
export class Watchers {
  readonly #all = new Set<Watches>();

  /** Calls `watches` for all changes until the signal aborts. */
  add(watches: Watches, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#all.add(watches);
    signal.addEventListener('abort', () => this.#all.delete(watches), { once: true });
  }

  notify<K extends keyof Watches>(what: K, ...facts: Parameters<NonNullable<Watches[K]>>): void {
    for (const watches of this.#all) (watches[what] as ((...facts: unknown[]) => void) | undefined)?.(...facts);
  }
}
