import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger } from '../../core/runtime.ts';
import type { Store } from '../../core/store/store.ts';
import type { Caches } from '../caches/caches.ts';
import type { Notify } from '../status/events.ts';

/** Dependencies of garbage collection. */
export interface GarbageTools {
  /** API client whose writes end with the lease. */
  api: KubeApi;
  caches: Caches;
  store: Store;
  clock: Clock;
  /** Time by this machine's clock, milliseconds since the epoch. */
  ownTime(): number;
  log: Logger;
  notify: Notify;
  /** Milliseconds after which the pods of an unresponsive node are given up. */
  nodeGraceMs: number;
  /**
   * Ends removals. It aborts later than the signal of a sweep when the controller has to stop. A removal under way is
   * finished, because one that was cut off could take effect after another controller has begun to lead.
   */
  removals: AbortSignal;
  /** Namespaces to collect in. Default: all. */
  namespaces?: readonly string[];
}

/** Maximum removals per sweep; the rest waits for the next, so that other work is not delayed. */
export const MAX_REMOVALS = 100;

/**
 * The earlier of the API server's time and this machine's, milliseconds since the epoch: an age computed from it is
 * never too high.
 */
export function surelyNow({ clock, ownTime }: GarbageTools): number {
  return Math.min(clock.now(), ownTime());
}
