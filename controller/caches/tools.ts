import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Watchers } from './watches.ts';

/** What the cache of each kind is made with. */
export interface CacheTools {
  api: KubeApi;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Namespaces to watch; absent: all. */
  namespaces?: readonly string[];
  /** Those who are told of changes. */
  watchers: Watchers;
}

/** What the cache of a kind is made with that must be readable: a namespace where it is not is left out. */
export interface RequiredTools extends CacheTools {
  /** Called when the namespace is considered closed because of this error, or open again. */
  onClosed(namespace: string, closed: Error | undefined): void;
}
