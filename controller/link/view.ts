import type { Bound, FrameOf, Pong, Refused } from '../../core/frames/messages.ts';

/** A result with what belongs to it, whole: ready to be committed. */
export interface Delivery {
  result: FrameOf<'result'>;
  state?: FrameOf<'state'>;
  log?: FrameOf<'log'>;
}

/** What is known of a pod's runner at this moment; read by decisions, changed by the link alone. */
export interface LinkView {
  readonly podUID: string;
  /**
   * Opening: no answer yet. Unbound: it waits for `bind`. Binding: `bind` is sent. Bound: it answers for our session and
   * incarnation. Foreign: it belongs to another session or incarnation. Ended: it said `bye`.
   */
  readonly phase: 'Opening' | 'Unbound' | 'Binding' | 'Bound' | 'Foreign' | 'Ended';
  readonly protocol?: number;
  readonly runnerVersion?: string;
  readonly bound?: Bound;
  /** Since when (milliseconds since the epoch) the runner has owed an answer over an open attach. */
  readonly silentSince?: number;
  /** UIDs of turns sent over this link, or reported by the runner as its own. */
  readonly dispatched: ReadonlySet<string>;
  /** Turns sent to this pod by somebody unknown: the link was opened to a runner that was bound already. */
  readonly resumed: boolean;
  readonly started?: { turn: string; at: string };
  readonly delivery?: Delivery;
  /** The answer to `snapshot`. */
  readonly snapshot?: FrameOf<'state'>;
  readonly refused?: Refused;
  readonly pong?: Pong;
  readonly suspendSent: boolean;
  /** Milliseconds since the epoch. */
  readonly cancelSent?: { turn: string; at: number };
}
