import type { KubeApi } from '../../core/kube/types.ts';
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
