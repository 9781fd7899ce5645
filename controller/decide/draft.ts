import type { StoredPod } from '../../core/kube/builtin.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import type { Delivery } from '../link/view.ts';
import type { CachedTurn, Problem, World } from '../world.ts';
import type { Effective } from './effective.ts';
import type { OwnTurns } from './own-turns.ts';

/** An effect that a decision asks for. They are carried out in order; one that fails ends the pass. */
export type Action =
  | { do: 'AdoptTurn'; turn: CachedTurn }
  /** Creates the Turn that `spec.input` stands for; one that exists already is fine. */
  | { do: 'CreateFirstTurn' }
  | { do: 'WriteTurn'; turn: CachedTurn; status: TurnStatus }
  /** Takes a place and writes incarnation + 1 with the pod's name: whoever wins this write owns the incarnation. */
  | { do: 'OwnIncarnation' }
  | { do: 'CreatePod'; settings: Effective }
  | { do: 'DeletePod'; pod: StoredPod; why: string }
  /** Live GETs, before a pod that the cache does not show counts as lost. */
  | { do: 'ConfirmGone'; podUID: string }
  /** Reads the frames of an ended container from its log. */
  | { do: 'ReadLog'; pod: StoredPod }
  | { do: 'OpenLink'; pod: StoredPod }
  | { do: 'CloseLink' }
  | { do: 'Bind'; settings: Effective }
  | { do: 'StartTurn'; turn: CachedTurn; timeoutMs: number }
  /** By uid: the turn's object may be gone. */
  | { do: 'CancelTurn'; turn: string }
  /** Stores what is large, writes the terminal status, acknowledges. */
  | { do: 'Commit'; turn: CachedTurn; delivery: Delivery }
  /** A result that fits no running turn: let go of after a live look. */
  | { do: 'Acknowledge'; delivery: Delivery }
  /** A container ended before it was bound. */
  | { do: 'NoteFailedStart' }
  /** Asks the runner to refuse turns and to hand over its state. */
  | { do: 'SuspendRunner' }
  | { do: 'ResumeRunner' }
  /** Stores the state handed over and looks again, live, whether anything came in between. */
  | { do: 'VerifySuspension' }
  /** The state could not be had or stored: the runner goes on, and the suspension is tried again later. */
  | { do: 'AbortSuspension'; message: string };

/** What the policies add up to. */
export interface Draft {
  readonly world: World;
  readonly turns: OwnTurns;
  /** The session's settings, or why it cannot have any. */
  readonly settings: Effective | Problem;
  actions: Action[];
  /** The session wants a place and has none. */
  waiting: boolean;
  /** The pod is gone for good: the status lets go of it. */
  released: boolean;
  /** The pod is being given up to suspend the session. */
  suspending: boolean;
  /** What keeps the session from becoming ready, as far as a policy found out. */
  problem: Problem | undefined;
  /** When to look again at the latest, milliseconds since the epoch. */
  wakeAt: number;
}

/** A policy looks at one concern; 'Stop' ends the list for this pass. */
export type Policy = (draft: Draft) => 'Stop' | undefined;

export function wake(draft: Draft, at: number): void {
  draft.wakeAt = Math.min(draft.wakeAt, at);
}
