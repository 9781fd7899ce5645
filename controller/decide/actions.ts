import type { StoredPod } from '../../core/kube/builtin.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Effective } from '../settings/effective.ts';
import type { Asking, Delivery } from '../world/link-view.ts';
import type { CachedApproval, CachedTurn, Problem } from '../world/world.ts';

/**
 * Reason for a suspension. `Held` and `Requested` are asked for by users: the running turn ends first. The others apply
 * only to a session that rests, and lapse when it does not.
 */
export type SuspensionReason = 'Held' | 'Requested' | 'Idle' | 'Preempted' | 'Moves';

/** Time and reason of the deletion of a session. */
export interface Expiry {
  field: 'ttlAfterFinished' | 'ttlAfterSuspended';
  /** Milliseconds since the epoch. */
  since: number;
  ttlMs: number;
}

/** An effect that a decision asks for. They are carried out in order; one that fails ends the pass. */
export type Action =
  | { do: 'AdoptTurn'; turn: CachedTurn }
  /** Creates the Turn that `spec.input` stands for; one that exists already is fine. */
  | { do: 'CreateFirstTurn' }
  | { do: 'WriteTurn'; turn: CachedTurn; status: TurnStatus }
  /** Ends a turn of a former session of this name, after a live look at the session. */
  | { do: 'EndReplaced'; turn: CachedTurn; status: TurnStatus }
  /** Takes a slot and writes incarnation + 1 with the pod's name: whoever wins this write owns the incarnation. */
  | { do: 'OwnIncarnation' }
  /** `turn`: the pod is runnerless, and made for it. */
  | { do: 'CreatePod'; settings: Effective; turn?: CachedTurn }
  /** Takes away what holds a pod without a runner back. */
  | { do: 'LetRun'; pod: StoredPod }
  /** Writes the input to the stdin of a pod without a runner, and closes it. */
  | { do: 'GiveInput'; turn: CachedTurn; pod: StoredPod }
  /** Ends the turn with what stands between the markers in the log of its pod; `lost` is what becomes of it without. */
  | { do: 'CommitLog'; turn: CachedTurn; pod: StoredPod; lost?: TurnStatus }
  /** `force`: the object goes at once, without its node's word that nothing runs any more. */
  | { do: 'DeletePod'; pod: StoredPod; why: string; force?: true }
  /** Live GETs, before a pod that the cache does not show counts as lost. */
  | { do: 'ConfirmGone'; podUID: string }
  /** A live GET, before a pod counts as one that did not start. */
  | { do: 'ReadPod'; pod: StoredPod }
  /** Live GETs, before ConfigMaps with agent files count as missing. */
  | { do: 'ReadFiles'; configMaps: string[] }
  /** Reads the frames of an ended container from its log. */
  | { do: 'ReadLog'; pod: StoredPod }
  | { do: 'OpenLink'; pod: StoredPod }
  | { do: 'CloseLink' }
  | { do: 'Bind'; settings: Effective }
  | { do: 'StartTurn'; turn: CachedTurn }
  /** Names the turn by uid, as its object may be gone. */
  | { do: 'CancelTurn'; turn: string; why?: 'LifetimeExceeded' }
  /** Stores what is large, writes the terminal status, acknowledges. */
  | { do: 'Commit'; turn: CachedTurn; delivery: Delivery; lost?: Problem }
  /** Stores the state, writes what the turn asks, acknowledges. */
  | { do: 'CommitRequest'; turn: CachedTurn; asking: Asking }
  /** A request that is committed already, or that no turn can be said to make. */
  | { do: 'AcknowledgeRequest'; asking: Asking }
  /** The approval goes with its turn from now on. */
  | { do: 'AdoptApproval'; approval: CachedApproval; turn: CachedTurn }
  /** Writes the decision and who is to be told; without an approval the one that is written already. */
  | { do: 'Consume'; turn: CachedTurn; approval: CachedApproval | undefined; incarnation: number; podUID: string }
  /** A result that fits no running turn: let go of after a live look. */
  | { do: 'Acknowledge'; delivery: Delivery }
  /** Asks the runner to refuse turns, when it was last active, and for its state where that is not stored yet. */
  | { do: 'SuspendRunner'; snapshot: boolean }
  | { do: 'ResumeRunner' }
  /** Stores the state handed over and looks again, live, whether anything came in between. */
  | { do: 'VerifySuspension'; reason: SuspensionReason }
  /** The state could not be had or stored: the runner goes on, and the suspension is tried again later. */
  | { do: 'AbortSuspension'; message: string }
  /** Shows how far the running turn is. `of`: when that was so, milliseconds since the epoch. */
  | { do: 'ShowUsage'; turn: CachedTurn; status: TurnStatus; of: number }
  /** Deletes the session after a second, live look. */
  | { do: 'Expire'; expiry: Expiry };
