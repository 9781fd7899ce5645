import type { Bound, FrameOf, Refused, Usage } from '../../core/frames/messages.ts';

/** A complete result with its state, artifacts and log, ready to be committed. */
export interface Delivery {
  result: FrameOf<'result'>;
  state?: FrameOf<'state'>;
  artifacts?: FrameOf<'artifacts'>;
  log?: FrameOf<'log'>;
}

/** A complete request for approval with its state and log. */
export interface Asking {
  request: FrameOf<'approval'>;
  state?: FrameOf<'state'>;
  log?: FrameOf<'log'>;
}

/** Progress of a running attempt, as its runner reports it. */
export interface Figures {
  turn: string;
  attempt: number;
  /** Start of the process by the runner's clock, and milliseconds it has run since. */
  startedAt: string;
  runningMs: number;
  usage?: Usage;
  /** Time of the report, milliseconds since the epoch by the controller's clock. */
  at: number;
}

/**
 * Reports whether the pod's runner was certainly never given the turn. An unbound runner may still be bound, and given
 * the turn, by control lines of an earlier leader that are on their way. An answer to this leader's ping shows what the
 * runner has taken of them; it takes no more afterwards.
 */
export function wasNeverSent(link: LinkView | undefined, podUID: string | undefined, turn: string): boolean {
  if (!link || link.podUID !== podUID || link.resumed || link.sent.has(turn)) return false;
  return link.fresh || link.answered === true;
}

/** Milliseconds for which a runner may owe an answer, over attaches that are open. */
export const UNRESPONSIVE_MS = 30_000;

/**
 * Milliseconds for which a runner may owe an answer until its pod is given up. While none of its node answers, the node is given its
 * grace.
 */
export function silencePatience(
  { nodeSilent }: Pick<LinkView, 'nodeSilent'>,
  { nodeGraceMs }: { nodeGraceMs: number },
): number {
  return nodeSilent ? Math.max(UNRESPONSIVE_MS, nodeGraceMs) : UNRESPONSIVE_MS;
}

/**
 * State of the link to a pod's runner; read by decisions, changed only by the link. The times of what the link has done and waits
 * for stand still while its attach waits for its place.
 */
export interface LinkView {
  readonly podUID: string;
  /**
   * True while the attach waits for its place among those to its node: messages are lost or wait, too. Also true while a message
   * of the runner waits for room, and nothing after it is heard.
   */
  readonly queued?: boolean;
  /** Creation of the link, milliseconds since the epoch. */
  readonly openedAt: number;
  /**
   * Opening: no answer yet. Unbound: the runner waits for `bind`. Binding: `bind` is sent. Bound: the runner answers
   * for this session and incarnation. Foreign: the runner belongs to another session or incarnation. Ended: the runner
   * said `bye`.
   */
  readonly phase: 'Opening' | 'Unbound' | 'Binding' | 'Bound' | 'Foreign' | 'Ended';
  readonly protocol?: number;
  readonly runnerVersion?: string;
  readonly bound?: Bound;
  /** Last `bind` sent over this link, milliseconds since the epoch. */
  readonly bindSentAt?: number;
  /**
   * Time since which the runner has owed an answer over an open attach, monotonic milliseconds; later by the time without one, and not
   * before the end of a silence of its whole node.
   */
  readonly silentSince?: number;
  /** True while other runners of the node owe an answer too and none of them has been heard: the node may be at fault. */
  readonly nodeSilent?: boolean;
  /** Milliseconds for which every attempt to attach has failed. */
  readonly unreachableMs?: number;
  /** True when other pods have answered since: the fault is with this pod or its node, not with the controller. */
  readonly othersAnswer?: boolean;
  /** UIDs of the turns sent over this link whose end is not acknowledged, or reported by the runner as its own. */
  readonly sent: ReadonlySet<string>;
  /** UID of the turn that the runner is believed to have; a pong without it shows that the control line was lost. */
  readonly active?: string;
  /** Id of the approval request, of that turn, whose decision was sent last. */
  readonly lastDecided?: string;
  /** The runner was bound already when the link was opened: an earlier leader may have sent it turns. */
  readonly resumed: boolean;
  /** True if no other leader can have sent the pod anything: this leader created it and opened the link at once, or claimed it. */
  readonly fresh: boolean;
  /** True once the runner has answered a ping of this leader: it obeys no earlier leader any more. */
  readonly answered?: boolean;
  /** Start of the turn, and when it was reckoned, milliseconds since the epoch; both by the controller's clock. */
  readonly started?: { turn: string; at: string; heardAt?: number };
  /** Progress of the running turn, as last reported. */
  readonly figures?: Figures;
  /** Result and request for approval that wait for their commit; at most one is set, the earlier. */
  readonly delivery?: Delivery;
  readonly asking?: Asking;
  /** The answer to `snapshot`. */
  readonly snapshot?: FrameOf<'state'>;
  readonly refused?: Refused;
  /** The runner was asked to suspend over this link. */
  readonly suspendSent: boolean;
  /** The runner reports that it refuses turns. */
  readonly suspended: boolean;
  /** Last activity of the agent, reported by the runner, by the controller's clock; milliseconds since the epoch. */
  readonly lastActivity?: number;
  /** The same of commands that clients run in the session; absent where none has run. */
  readonly commandActivity?: number;
  /** True while the runner reports that clients cannot enter the session. */
  readonly closedToClients?: true;
  /**
   * Turns whose cancellation was sent and whose end is not acknowledged, by uid; `at` in monotonic milliseconds. `unknown`: the
   * runner has refused it, because it never had the turn.
   */
  readonly cancelSent?: ReadonlyMap<string, { at: number; why?: 'LifetimeExceeded'; unknown?: true }>;
}
