import type { CachedObject } from '../../core/kube/cache.ts';
import type { Informer } from '../../core/kube/informer.ts';
import type { KubeApi, KubeObject } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Watchers } from './watches.ts';

/** What the cache of each kind is made with. */
export interface CacheTools {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Namespaces to watch. Default: all. */
  namespaces?: readonly string[];
  /** Those who watch for changes. */
  watchers: Watchers;
}

/** Tools for the cache of a kind that must be readable: a namespace where it is not is left out. */
export interface RequiredTools extends CacheTools {
  /** Handler of a namespace that is considered closed because of this error, or open again. */
  onClosed(namespace: string, closed: Error | undefined): void;
}

/** Reports whether it is known which objects there are in the namespace: they have been read, and may be read. */
export function isKnown<T extends KubeObject, C extends CachedObject>(
  informer: Informer<T, C>,
  namespace: string,
): boolean {
  return informer.isSynced && !informer.closed(namespace);
}

/** Returns an object, or that none exists; undefined while that is not known. */
export function ifKnown<T extends KubeObject, C extends CachedObject>(
  informer: Informer<T, C>,
  namespace: string,
  name: string,
): C | 'Missing' | undefined {
  return isKnown(informer, namespace) ? (informer.get(namespace, name) ?? 'Missing') : undefined;
}
