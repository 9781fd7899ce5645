import type { DecoderCounters } from '../core/frames/decode.ts';
import type { StoredPod } from '../core/kube/builtin.ts';
import type { StoredSessionClass, StoredSessionPool, StoredTurn } from '../core/resources/kinds.ts';
import type { Tally } from './capacity/tally.ts';
import type { PodCounters } from './link/pod-counters.ts';
import type { CachedSession } from './observed/world.ts';

/** Receiver of measurements of the controller's work. */
export interface Meter {
  /**
   * Handler of a turn that this process's write has ended, called once the answer has come. `sessionClass` is empty where no such
   * class exists.
   */
  turnEnded(turn: StoredTurn, sessionClass: string): void;
  /** Handler of the end of each reconcile, with its duration in seconds. */
  reconciled(result: ReconcileResult, seconds: number, error?: unknown): void;
  /** Handler of a claim of a pool's pod, with the seconds from the decision to the claim. */
  claimed(seconds: number): void;
  /** Counters of frames refused by the decoders of all links. */
  readonly refused: DecoderCounters;
  /** Counters of what pods were kept from, over all links. */
  readonly pods: PodCounters;
}

/**
 * Results of a reconcile, named as in controller-runtime; `stopped`: cut off, as the controller stops or leads no more.
 */
export type ReconcileResult = 'success' | 'requeue_after' | 'error' | 'stopped';

/** Sessions, pods and slots known to the leader. */
export interface Inventory {
  sessions: readonly CachedSession[];
  pods: readonly StoredPod[];
  pools: readonly StoredSessionPool[];
  /** Number of pods with an attach of the controller. */
  attached: number;
  /** Slots that are taken. */
  tally: Tally;
  /** Limit of the installation; absent: none. */
  maxRunning: number | undefined;
  class(name: string): StoredSessionClass | undefined;
  /** Bytes of the inputs of turns that have not ended. */
  inputBytes: number;
  /** Bytes of the ended turns that are kept, as of the last sweep of each session. */
  historyBytes: number;
}
