import type { Random } from '../../core/runtime.ts';
import type { Caches } from '../caches/caches.ts';
import type { Ledger } from '../capacity/ledger.ts';
import type { Links } from '../link/links.ts';
import type { NetworkPolicies } from '../network/policies.ts';
import type { Installation } from '../observed/world.ts';
import type { ControllerTools } from '../runtime/queue-controller.ts';
import { PodNumbers } from './pod-numbers.ts';
import type { PoolFailures, PoolWorld } from './pool-world.ts';

/** Dependencies of all reconciles of pools. */
export interface PoolTools extends ControllerTools {
  caches: Caches;
  links: Links;
  ledger: Ledger;
  networkPolicies: Pick<NetworkPolicies, 'ensure'>;
  installation: Installation;
}

/** Memory of this leader about one pool; its loss is harmless. */
export interface PoolMemory {
  uid: string;
  failures: PoolFailures | undefined;
  starts: PoolWorld['starts'];
  counts: { claimed: number; missed: number };
  /** Time of the last removal for a session that waits for quota or a node, monotonic milliseconds. */
  gaveWayAt: number;
  /** Time of the last write of the status, monotonic milliseconds. */
  writtenAt: number;
  /** Pods that the API server has been asked to delete, by uid. */
  removed: Set<string>;
  /** Pods that a session could claim at the last reconcile; see `claimableNow`. */
  claimable: ReadonlySet<string>;
  numbers: PodNumbers;
}

export function emptyPoolMemory(uid: string, random: Random): PoolMemory {
  return {
    uid,
    failures: undefined,
    starts: undefined,
    counts: { claimed: 0, missed: 0 },
    gaveWayAt: Number.NEGATIVE_INFINITY,
    writtenAt: Number.NEGATIVE_INFINITY,
    removed: new Set(),
    claimable: new Set(),
    numbers: new PodNumbers(random),
  };
}
