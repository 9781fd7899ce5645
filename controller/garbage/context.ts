import type { EventSubject } from '../../core/kube/events.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Reason } from '../../core/resources/reasons.ts';
import type { Clock, Logger } from '../../core/runtime.ts';
import type { Store } from '../../core/store/store.ts';
import type { Caches } from '../caches/caches.ts';

/** What garbage collection works with. */
export interface GarbageTools {
  /** Writes through it end with the lease. */
  api: KubeApi;
  caches: Caches;
  store: Store;
  clock: Clock;
  /** By our own clock, milliseconds since the epoch. */
  ownTime(): number;
  log: Logger;
  /** Tells people by a Kubernetes Event. */
  record(subject: EventSubject, type: 'Normal' | 'Warning', reason: Reason, message: string): void;
  /** How long a node may not answer before its pods are given up, milliseconds. */
  nodeGraceMs: number;
  /** Absent: all. */
  namespaces?: readonly string[];
}

/** The most that one pass removes: the rest waits for the next, so that nobody else has to wait. */
export const MOST_AT_ONCE = 100;

/** Milliseconds since the epoch that have surely come: by the API server's clock and by our own. */
export function surelyNow({ clock, ownTime }: GarbageTools): number {
  return Math.min(clock.now(), ownTime());
}
