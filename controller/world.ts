import type { StoredPod } from '../core/kube/builtin.ts';
import type { ServerMeta } from '../core/kube/types.ts';
import type { StoredSession, StoredSessionClass } from '../core/resources/kinds.ts';
import type { Reason } from '../core/resources/reasons.ts';
import type { StateRef } from '../core/resources/schema.ts';
import type { TurnSpec, TurnStatus } from '../core/resources/turn.ts';
import type { LinkView } from './link/view.ts';

/** What a body was when it left the cache: enough to tell whether it is still the same, and too large. */
export interface BodyFacts {
  /** sha256 of the JSON, hex. */
  digest: string;
  bytes: number;
}

/** A Session without the body of its input. */
export type CachedSession = Omit<StoredSession, 'spec'> & {
  spec: Omit<StoredSession['spec'], 'input'> & { input?: BodyFacts };
};

/** A Turn without its bodies. */
export interface CachedTurn {
  metadata: Pick<
    ServerMeta,
    'name' | 'namespace' | 'uid' | 'resourceVersion' | 'creationTimestamp' | 'deletionTimestamp' | 'ownerReferences'
  >;
  spec: Pick<TurnSpec, 'session' | 'timeout' | 'cancel'>;
  status: TurnStatus;
  input: BodyFacts;
}

/** The installation's own settings that decisions depend on. */
export interface Installation {
  runnerImage: string;
  /** Milliseconds that a pod may take to answer before it counts as unresponsive. */
  unresponsiveMs: number;
}

/** Whether a place for a running session is to be had. */
export type Place = 'Held' | 'Available' | { waiting: Extract<Reason, 'AtCapacity'>; message: string };

/** A failure of an effect that the next decisions must know, kept by the leader in memory and learnt anew by its successor. */
export interface Problem {
  reason: Reason;
  message: string;
}

/** What this leader remembers of one session beyond what is written. Lost without harm. */
export interface Memory {
  /** The last refusal of the pod's creation. */
  startProblem?: Problem | undefined;
  /** A result that could not be stored, since when and why. */
  commitProblem?: (Problem & { since: number }) | undefined;
  /** Live GETs found that this pod is gone. */
  confirmedGone?: { podUID: string } | undefined;
  /** The log of this ended pod has been read to its end, or cannot be. */
  logRead?: { podUID: string } | undefined;
  /** Failed attempts to read it. */
  logFailures?: number;
  /** Containers that ended before they were bound, one after the other, and when the last did. */
  failedStarts?: { count: number; at: number } | undefined;
  /** This pod holds a state that was not stored and never will be: it cannot be gone on from. */
  unstored?: { podUID: string } | undefined;
  /** A suspension failed: not again before this time. */
  suspendAgainAt?: number | undefined;
  /** The suspension under way: the state handed over is stored, and the second look found nothing. */
  suspension?: { podUID: string; verified: StateRef | 'Unchanged' } | undefined;
}

/** Everything a decision about one Session depends on. */
export interface World {
  /** Milliseconds since the epoch. */
  now: number;
  session: CachedSession;
  /** Every cached Turn that names the session, in no order: its own, ownerless ones, and those of a former session. */
  turns: CachedTurn[];
  class: StoredSessionClass | undefined;
  /** The pod that status.podName names. */
  pod: StoredPod | undefined;
  /** Other pods of the session: earlier incarnations that are not gone yet. */
  strays: StoredPod[];
  link: LinkView | undefined;
  memory: Memory;
  place: Place;
  installation: Installation;
}
