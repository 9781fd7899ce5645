import type { StoredPod } from '../../core/kube/builtin.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Asking, Delivery } from '../observed/link-view.ts';
import type { CachedApproval, CachedTurn, Problem } from '../observed/world.ts';
import type { Effective } from '../settings/effective.ts';

/**
 * Reason for a suspension. Users ask for `Held`, `Requested` and `Restart`, and `RunnerOutdated` cannot be put off: the
 * running turn ends first. The others apply only to a session that rests, and lapse when it does not.
 */
export type SuspensionReason =
  | 'Held'
  | 'Requested'
  | 'Restart'
  | 'RunnerOutdated'
  | 'Idle'
  | 'Preempted'
  | 'Moves'
  | 'Turnless';

/** Time and reason of the deletion of a session. */
export interface Expiry {
  field: 'ttlAfterFinished' | 'ttlAfterSuspended';
  /** Milliseconds since the epoch. */
  since: number;
  ttlMs: number;
}

/** Effect of a decision. Effects are carried out in order; one that fails ends the reconcile. */
export type Action =
  | { do: 'AdoptTurn'; turn: CachedTurn }
  /** Creates the Turn of `spec.input`, if it does not exist yet. */
  | { do: 'CreateFirstTurn' }
  | { do: 'WriteTurn'; turn: CachedTurn; status: TurnStatus }
  /** Says what a turn waits for, which changes nothing about it. */
  | { do: 'ShowWait'; turn: CachedTurn; status: TurnStatus }
  /** Ends a turn of a former session of this name, after a live read of the session. */
  | { do: 'EndReplaced'; turn: CachedTurn; status: TurnStatus }
  /** Makes the pod of a pool that the status names the session's, by a write at the pod's version; `pod` as last observed. */
  | { do: 'ClaimPod'; podUID: string; pod?: StoredPod }
  /** `turn`: the pod is runnerless, and made for it. */
  | { do: 'CreatePod'; settings: Effective; turn?: CachedTurn }
  /** Removes the scheduling gate of a runnerless pod. */
  | { do: 'LetRun'; pod: StoredPod }
  /** Writes the input to the stdin of a runnerless pod, and closes it. */
  | { do: 'GiveInput'; turn: CachedTurn; pod: StoredPod }
  /** Ends the turn with the text between the markers in the log of its pod; `lost` is its status if there is none. */
  | { do: 'CommitLog'; turn: CachedTurn; pod: StoredPod; lost?: TurnStatus }
  /**
   * `force`: the object is removed at once, although its node has not confirmed that nothing runs any more. `problem`: see
   * PendingDeletion.
   */
  | { do: 'DeletePod'; pod: StoredPod; why: string; problem?: Problem; force?: true }
  /** Live GETs, before a pod that the cache does not show counts as lost. */
  | { do: 'ConfirmGone'; podUID: string }
  /** A live GET, before a pod counts as one that did not start. */
  | { do: 'ReadPod'; pod: StoredPod }
  /** A live list, before a turn ends because nobody has decided on its request. */
  | { do: 'ReadApprovals'; turn: CachedTurn; request: string }
  /** Live GETs, before ConfigMaps with agent files count as missing. */
  | { do: 'ReadFiles'; configMaps: string[] }
  /** Removes from the namespace what may give way in the store, about so many bytes. */
  | { do: 'MakeRoom'; bytes: number }
  /** Reads the frames of an ended container from its log. */
  | { do: 'ReadLog'; pod: StoredPod }
  | { do: 'OpenLink'; pod: StoredPod }
  | { do: 'CloseLink' }
  | { do: 'Bind'; settings: Effective }
  | { do: 'StartTurn'; turn: CachedTurn }
  /** Names the turn by uid, because its object may be deleted. */
  | { do: 'CancelTurn'; turn: string; why?: 'LifetimeExceeded' }
  /** Stores large parts, writes the terminal status, acknowledges. */
  | { do: 'Commit'; turn: CachedTurn; delivery: Delivery; lost?: Problem }
  /** Stores the state, writes the request of the turn, acknowledges. */
  | { do: 'CommitRequest'; turn: CachedTurn; asking: Asking }
  /** Acknowledges a request that is already committed, or that belongs to no turn. */
  | { do: 'AcknowledgeRequest'; asking: Asking }
  /** Makes the turn the owner of the approval, so that both are deleted together. */
  | { do: 'AdoptApproval'; approval: CachedApproval; turn: CachedTurn }
  /** Writes the decision and the pod that gets it; without an approval, the decision in the status is used. */
  | { do: 'Consume'; turn: CachedTurn; approval: CachedApproval | undefined; incarnation: number; podUID: string }
  /** Acknowledges a result that fits no running turn, after a live read. */
  | { do: 'Acknowledge'; delivery: Delivery }
  /** Asks the runner to refuse turns, and for its last activity and, with `snapshot`, its state. */
  | { do: 'SuspendRunner'; snapshot: boolean }
  | { do: 'ResumeRunner' }
  /** Stores the state from the runner and reads live whether anything has changed since. */
  | { do: 'VerifySuspension'; reason: SuspensionReason }
  /** Undoes a suspension whose state could not be read or stored; it is tried again later. */
  | { do: 'AbortSuspension'; message: string }
  /** Shows the usage of the running turn. `of`: time of the figures, milliseconds since the epoch. */
  | { do: 'ShowUsage'; turn: CachedTurn; status: TurnStatus; of: number }
  /** Deletes the session after a live read. */
  | { do: 'Expire'; expiry: Expiry };
