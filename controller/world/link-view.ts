import type { Bound, FrameOf, Refused, Usage } from '../../core/frames/messages.ts';

/** A result with what belongs to it, whole: ready to be committed. */
export interface Delivery {
  result: FrameOf<'result'>;
  state?: FrameOf<'state'>;
  log?: FrameOf<'log'>;
}

/** A request for a decision with what belongs to it, whole. */
export interface Asking {
  request: FrameOf<'approval'>;
  state?: FrameOf<'state'>;
  log?: FrameOf<'log'>;
}

/** What a running attempt at a turn has come to, by its runner's word. */
export interface Figures {
  turn: string;
  attempt: number;
  /** When its process was started, by the runner's clock, and for how many milliseconds that has run. */
  startedAt: string;
  runningMs: number;
  usage?: Usage;
  /** When this was heard, milliseconds since the epoch by our clock. */
  at: number;
}

/**
 * Whether the pod's runner was surely never given the turn. An unbound runner may yet be bound, and given the turn, by lines of
 * an earlier leader that are still on their way. Its answer to a ping shows what it has taken of them, and it takes no more.
 */
export function wasNeverSent(link: LinkView | undefined, podUID: string | undefined, turn: string): boolean {
  if (!link || link.podUID !== podUID || link.resumed || link.sent.has(turn)) return false;
  return link.fresh || link.answered === true;
}

/** What is known of a pod's runner at this moment; read by decisions, changed by the link alone. */
export interface LinkView {
  readonly podUID: string;
  /** When the link was made, milliseconds since the epoch. */
  readonly openedAt: number;
  /**
   * Opening: no answer yet. Unbound: it waits for `bind`. Binding: `bind` is sent. Bound: it answers for our session and
   * incarnation. Foreign: it belongs to another session or incarnation. Ended: it said `bye`.
   */
  readonly phase: 'Opening' | 'Unbound' | 'Binding' | 'Bound' | 'Foreign' | 'Ended';
  readonly protocol?: number;
  readonly runnerVersion?: string;
  readonly bound?: Bound;
  /** When this link sent the last `bind`, milliseconds since the epoch. */
  readonly bindSentAt?: number;
  /** Since when (milliseconds since the epoch) the runner has owed an answer over an open attach. */
  readonly silentSince?: number;
  /** For how long, in milliseconds, all attempts to attach have come to nothing. */
  readonly unreachableMs?: number;
  /** Other pods have answered meanwhile: it is this one, or its node, that cannot be reached. */
  readonly othersAnswer?: boolean;
  /** UIDs of all turns ever sent over this link, or reported by the runner as its own. */
  readonly sent: ReadonlySet<string>;
  /** UID of the turn that the runner is taken to have; a pong without it shows that its line was lost. */
  readonly active?: string;
  /** The request whose decision it was given last, of that turn. */
  readonly told?: string;
  /** The runner was bound already when the link was opened: others may have sent it turns. */
  readonly resumed: boolean;
  /** This leader created the pod and opened the link at once: nobody else can have sent it anything. */
  readonly fresh: boolean;
  /** The runner has answered a ping of this leader: it obeys no earlier one any more. */
  readonly answered?: boolean;
  /** When the turn was started, by the controller's clock. */
  readonly started?: { turn: string; at: string };
  /** Of the turn that runs, as last heard. */
  readonly figures?: Figures;
  /** The earlier of a result and a request that wait for their commit. */
  readonly delivery?: Delivery;
  readonly asking?: Asking;
  /** The answer to `snapshot`. */
  readonly snapshot?: FrameOf<'state'>;
  readonly refused?: Refused;
  /** The runner was asked over this link to suspend. */
  readonly suspendSent: boolean;
  /** The runner says that it refuses turns. */
  readonly suspended: boolean;
  /** When its agent last did something, by the runner's word and the controller's clock; milliseconds since the epoch. */
  readonly lastActivity?: number;
  /** What was asked to stop, by the turn's uid; `at` in milliseconds since the epoch. */
  readonly cancelSent?: ReadonlyMap<string, { at: number; why?: 'LifetimeExceeded' }>;
}
