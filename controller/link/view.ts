import type { Bound, FrameOf, Refused } from '../../core/frames/messages.ts';

/** A result with what belongs to it, whole: ready to be committed. */
export interface Delivery {
  result: FrameOf<'result'>;
  state?: FrameOf<'state'>;
  log?: FrameOf<'log'>;
}

/**
 * Whether the pod's runner was surely never given the turn. A link that has not heard of the runner yet knows nothing,
 * unless nobody else can have.
 */
export function wasNeverSent(link: LinkView | undefined, podUID: string | undefined, turn: string): boolean {
  if (!link || link.podUID !== podUID || link.resumed || link.sent.has(turn)) return false;
  return link.fresh || link.phase !== 'Opening';
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
  /** UIDs of all turns ever sent over this link, or reported by the runner as its own. */
  readonly sent: ReadonlySet<string>;
  /** UID of the turn that the runner is taken to have; a pong without it shows that its line was lost. */
  readonly active?: string;
  /** The runner was bound already when the link was opened: others may have sent it turns. */
  readonly resumed: boolean;
  /** This leader created the pod and opened the link at once: nobody else can have sent it anything. */
  readonly fresh: boolean;
  readonly started?: { turn: string; at: string };
  readonly delivery?: Delivery;
  /** The answer to `snapshot`. */
  readonly snapshot?: FrameOf<'state'>;
  readonly refused?: Refused;
  /** The runner was asked over this link to suspend. */
  readonly suspendSent: boolean;
  /** The runner says that it refuses turns. */
  readonly suspended: boolean;
  /** Milliseconds since the epoch. */
  readonly cancelSent?: { turn: string; at: number };
}
