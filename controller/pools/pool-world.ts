import type { StoredPod } from '../../core/kube/builtin.ts';
import type { StoredSessionPool } from '../../core/resources/kinds.ts';
import type { ClockJump } from '../../core/runtime.ts';
import type { Room } from '../capacity/pool-room.ts';
import type { LinkView } from '../observed/link-view.ts';
import type { NodeFacts, Problem } from '../observed/world.ts';

/** A pod of the pool that no session has claimed, and what is known of it. */
export interface PoolPod {
  pod: StoredPod;
  link: LinkView | undefined;
  node: NodeFacts | undefined;
  /** True if a session is about to claim the pod: its status names it, or will. */
  taken: boolean;
  /** The pod is to be given up for a session that waits for a slot. */
  isGivenUp: boolean;
}

/** Consecutive pods that did not start, by this leader's memory. */
export interface PoolFailures {
  count: number;
  problem: Problem;
  /** Time from which pods are created again, milliseconds since the epoch. */
  againAt: number;
}

/** The input of every decision about one SessionPool. */
export interface PoolWorld {
  /** Milliseconds since the epoch. */
  now: number;
  /** Milliseconds of the monotonic clock, at the same moment. */
  monotonic: number;
  /** Jumps of the clock of `now`. */
  clockJumps: readonly ClockJump[];
  pool: StoredSessionPool;
  /** Hash of the pods that the pool makes now, or the problem that prevents any. */
  template: { hash: string } | Problem;
  pods: readonly PoolPod[];
  /** What a session could claim at the last reconcile; see `claimableNow`. */
  claimableBefore: ReadonlySet<string>;
  room: Room;
  /** Number of slots that pods of the class can have in the namespace at most; undefined: no limit, or unknown. */
  most: number | undefined;
  /** CPUs that pods can have on the nodes that take any; 0: unknown. */
  cpus: number;
  /** A session that waits for something else than a slot which pods of the pool take: quota, or room on a node. */
  blocked: { session: string; reason: 'QuotaExceeded' | 'Unschedulable' } | undefined;
  /** Time of the last removal for a blocked session, monotonic milliseconds. */
  gaveWayAt: number;
  /** Times at which sessions of the class were first and last seen to start since pods were created, monotonic milliseconds. */
  starts: { firstAt: number; lastAt: number } | undefined;
  failures: PoolFailures | undefined;
  /** Claims and misses since the status was written. */
  counts: { claimed: number; missed: number };
  /** Protocol version that the controller speaks. */
  protocol: number;
  nodeGraceMs: number;
}
