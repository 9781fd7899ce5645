import { defined } from '../../core/defined.ts';
import type { Bound, FrameOf, Pong, Ready, RefusalCode, Refused } from '../../core/frames/messages.ts';
import type { Asking, Delivery, Figures, LinkView } from '../observed/link-view.ts';
import type { Silence } from './heartbeat.ts';
import type { NodeAnswers } from './silences.ts';

/**
 * Reducer of a link's view: one function per control line sent and per message received. Times are milliseconds since
 * the epoch by the controller's clock.
 */

/** The view of a link, which the parts of the link share. Changed only by the functions of this file. */
export class Shown {
  view: LinkView;
  /** Tells that the view may have changed. */
  readonly changed: () => void;

  constructor(view: LinkView, changed: () => void) {
    this.view = view;
    this.changed = changed;
  }

  change(view: LinkView): void {
    this.view = view;
    this.changed();
  }
}

/** Codes with which a runner refuses a turn that it never began. */
const NOT_BEGUN: ReadonlySet<RefusalCode> = new Set(['Suspended', 'NotRestored', 'Busy']);

/** View of a link that has not been attached yet. */
export function unopened(podUID: string, openedAt: number): LinkView {
  return {
    podUID,
    openedAt,
    phase: 'Opening',
    sent: new Set(),
    resumed: false,
    fresh: false,
    suspendSent: false,
    suspended: false,
  };
}

/** Reports whether the runner has nothing to send: it has no turn and owes no answer, and this leader knows it. */
export function isAtRest({ phase, answered, active, delivery, asking, suspendSent, silentSince }: LinkView): boolean {
  const isBusy = active !== undefined || delivery || asking || suspendSent || silentSince !== undefined;
  return phase === 'Bound' && answered === true && !isBusy;
}

/** View of a pod that this leader has created or claimed. `fresh`: no other leader can have sent it anything. */
export function obtained(view: LinkView, fresh: boolean): LinkView {
  return { ...view, fresh };
}

/** View after `bind`, which also answers the runner's last refusal. */
export function bindSent({ refused: _, ...view }: LinkView, now: number): LinkView {
  return { ...view, phase: 'Binding', bindSentAt: now };
}

/**
 * View after the turn was sent, with the id of the approval request that this decides, if any. A runner that did not have the turn
 * did not keep its cancellation.
 */
export function turnSent({ lastDecided: _, ...view }: LinkView, turn: string, lastDecided?: string): LinkView {
  return {
    ...(view.cancelSent?.get(turn)?.unknown ? withoutCancel(view, turn) : view),
    sent: view.sent.has(turn) ? view.sent : new Set([...view.sent, turn]),
    active: turn,
    ...defined({ lastDecided }),
  };
}

/** View after a cancellation. The refusal of an earlier one does not apply to this one. */
export function cancelSent(view: LinkView, turn: string, cancelled: Cancelled): LinkView {
  return {
    ...withoutRefusal(view, 'UnknownTurn'),
    cancelSent: new Map([...(view.cancelSent ?? []), [turn, cancelled]]),
  };
}

/** A cancellation that was sent. */
export type Cancelled = NonNullable<LinkView['cancelSent']> extends ReadonlyMap<string, infer C> ? C : never;

/** View after `suspend`. */
export function suspendSent({ refused: _, snapshot: __, ...view }: LinkView): LinkView {
  return { ...view, suspendSent: true, suspended: false };
}

/** View after `resume`. A turn that was refused since is no longer believed to be active, so it is sent again. */
export function resumeSent({ snapshot: _, active, ...view }: LinkView): LinkView {
  const kept = active !== undefined && view.sent.has(active) ? { active } : {};
  return { ...view, ...kept, suspendSent: false, suspended: false };
}

/** View after the first `ready` of an attach: what the runner is, and whose. */
export function recognized(
  view: LinkView,
  { protocol, runnerVersion }: Ready,
  change: Partial<Pick<LinkView, 'phase' | 'resumed'>>,
): LinkView {
  return { ...view, protocol, runnerVersion, ...change };
}

/** View after the runner has confirmed `bind`. */
export function bound(view: LinkView, message: Bound): LinkView {
  return { ...view, phase: 'Bound', bound: message };
}

/** View with the result or request that waits for its commit next. */
export function delivered(
  { delivery: _, asking: __, ...view }: LinkView,
  next: { delivery?: Delivery; asking?: Asking },
): LinkView {
  return { ...view, ...next };
}

/** View with the state that a suspended runner has handed over. */
export function snapshotTaken(view: LinkView, snapshot: FrameOf<'state'>): LinkView {
  return { ...view, snapshot };
}

/** View while the log of an ended container is read: its frames prove that the runner was bound. */
export function logOpened(view: LinkView): LinkView {
  return { ...view, resumed: true };
}

/** View after `bye`. */
export function ended(view: LinkView): LinkView {
  return { ...view, phase: 'Ended' };
}

/** View after another silence than before. */
export function silent(view: LinkView, { silentSince, unreachableMs, othersAnswer }: Silence): LinkView {
  const { silentSince: before, unreachableMs: unreachableBefore = 0, othersAnswer: _, ...rest } = view;
  if (before === silentSince && unreachableBefore === unreachableMs) return view;
  return {
    ...rest,
    ...defined({ silentSince }),
    ...(unreachableMs === 0 ? {} : { unreachableMs, othersAnswer }),
  };
}

/**
 * View with the present start of the silence that it shows, if any: `since`, which moves on while no attach is open, or the end of a
 * silence of the whole node.
 */
export function silentFrom(view: LinkView, since: number, { nodeSilent, nodeAnsweredAt = 0 }: NodeAnswers): LinkView {
  if (view.silentSince === undefined) return view;
  return { ...view, silentSince: Math.max(since, nodeAnsweredAt), ...(nodeSilent ? { nodeSilent } : {}) };
}

/** View after the attach has waited this many milliseconds for its place: all times that count against the pod are later by them. */
export function delayed(view: LinkView, ms: number): LinkView {
  const { openedAt, bindSentAt, cancelSent } = view;
  const later = ([turn, sent]: [string, Cancelled]): [string, Cancelled] => [turn, { ...sent, at: sent.at + ms }];
  return {
    ...view,
    openedAt: openedAt + ms,
    ...(bindSentAt === undefined ? {} : { bindSentAt: bindSentAt + ms }),
    ...(cancelSent ? { cancelSent: new Map([...cancelSent].map(later)) } : {}),
  };
}

function withoutRefusal(view: LinkView, code: RefusalCode): LinkView {
  const { refused, ...rest } = view;
  return refused?.code === code ? rest : view;
}

/**
 * Turns that count as sent from which on no other turn counts for the runner's word alone. A runner has one turn at a time, and only
 * a hostile one speaks of so many.
 */
const MAX_REPORTED = 64;

/** Turns with one that the runner has reported as its own. */
function withReported(sent: ReadonlySet<string>, turn: string): ReadonlySet<string> {
  return sent.has(turn) || sent.size >= MAX_REPORTED ? sent : new Set([...sent, turn]);
}

/**
 * View after the runner reports that it has started the turn. A runner that has begun a turn has its state, and a later
 * refusal for lack of it must count again.
 */
export function started(view: LinkView, turn: string, now: number): LinkView {
  return {
    ...withoutRefusal(view, 'NotRestored'),
    ...startedSince(view, turn, now),
    sent: withReported(view.sent, turn),
  };
}

/**
 * Start of a turn by the controller's clock: a runner's clock may be arbitrary, so its start is `agoMs` before now, or
 * now.
 */
function startedSince(view: LinkView, turn: string, now: number, agoMs?: number): Pick<LinkView, 'started'> {
  if (agoMs === undefined && view.started?.turn === turn) return { started: view.started };
  // Times before the epoch are cut to it.
  return { started: { turn, at: new Date(Math.max(0, now - (agoMs ?? 0))).toISOString(), heardAt: now } };
}

/**
 * View after an answer to a ping; `isOurs` when this leader has sent it over this attach. `changeNumber`: number of the
 * last control line that gave a turn or acknowledged the end of one; the answer to an older ping does not know of that.
 */
export function answered(
  view: LinkView,
  pong: Pong,
  { isOurs, changeNumber, now }: { isOurs: boolean; changeNumber: number; now: number },
): LinkView {
  const { active: _, lastDecided: __, figures: ___, commandActivity: ____, closedToClients: _____, ...rest } = view;
  const isOlder = pong.n < changeNumber;
  const turn = isOlder && pong.turn?.uid !== view.active ? undefined : pong.turn;
  const active = isOlder ? view.active : turn?.uid;
  const lastDecided = isOlder ? view.lastDecided : turn?.told;
  const figures = figuresOf(turn, now);
  return {
    ...rest,
    phase: 'Bound',
    sent: turn ? withReported(view.sent, turn.uid) : view.sent,
    ...(active ? { active } : {}),
    ...(lastDecided ? { lastDecided } : {}),
    ...(turn?.startedAt ? startedSince(view, turn.uid, now, turn.runningMs) : {}),
    ...(figures ? { figures } : {}),
    ...(isOurs ? { answered: true } : {}),
    suspended: pong.suspended,
    lastActivity: now - pong.idleMs,
    ...(pong.commandIdleMs !== undefined ? { commandActivity: now - pong.commandIdleMs } : {}),
    ...(pong.closedToClients ? { closedToClients: true as const } : {}),
  };
}

/** Progress of a running turn; once its process has ended, the result has the figures. */
function figuresOf(turn: Pong['turn'], now: number): Figures | undefined {
  if (turn?.phase !== 'Running' || turn.startedAt === undefined || turn.runningMs === undefined) return undefined;
  const { uid, attempt, startedAt, runningMs, usage } = turn;
  return { turn: uid, attempt, startedAt, runningMs, ...(usage ? { usage } : {}), at: now };
}

/** View after an old pong: it still proves that the runner had the turn. */
export function remembered(view: LinkView, { turn }: Pong): LinkView {
  return turn ? { ...view, sent: withReported(view.sent, turn.uid) } : view;
}

/** Refusals of what a session needs for its turns. Its runner then refuses turns too, which says less. */
const CANNOT_START: ReadonlySet<RefusalCode> = new Set([
  'RestoreFailed',
  'FilesFailed',
  'EnvironmentFailed',
  'EnvironmentMismatch',
]);

/** View after the runner refused a control line. */
export function refused(view: LinkView, message: Refused): LinkView {
  if (message.code === 'NotRestored' && view.refused && CANNOT_START.has(view.refused.code)) return view;
  return { ...view, refused: message };
}

/** View after the runner refused to stop a turn that it does not have; `turn` is believed not to be active. */
export function cancelRefused(view: LinkView, turn: string, code: RefusalCode): LinkView {
  const { active, ...inactive } = view;
  const rest = active === turn ? inactive : view;
  const cancelled = view.cancelSent?.get(turn);
  if (code !== 'UnknownTurn' || !cancelled) return rest;
  return { ...rest, cancelSent: new Map([...(view.cancelSent ?? []), [turn, { ...cancelled, unknown: true }]]) };
}

function withoutCancel(view: LinkView, turn: string): LinkView {
  if (!view.cancelSent?.has(turn)) return view;
  return { ...view, cancelSent: new Map([...view.cancelSent].filter(([one]) => one !== turn)) };
}

/**
 * View after the runner refused the turn that was sent last: when it never began the turn, the turn counts as not sent.
 */
export function turnRefused(view: LinkView, code: RefusalCode): LinkView {
  const { active, sent, suspended } = view;
  if (!NOT_BEGUN.has(code) || active === undefined || view.started?.turn === active) return view;
  const others = new Set([...sent].filter((turn) => turn !== active));
  return { ...view, sent: others, suspended: suspended || code === 'Suspended' };
}

/** View after an acknowledgement: everything through this frame is durable, so what it covers is dropped. */
export function acknowledged(view: LinkView, through: number): LinkView {
  const { delivery, asking: _, snapshot, active, started, figures, ...rest } = view;
  const ended = endedBy(view, through);
  return {
    ...(ended === undefined ? rest : withoutCancel(rest, ended)),
    sent: new Set([...rest.sent].filter((turn) => turn !== ended)),
    ...(started && started.turn !== ended ? { started } : {}),
    ...(figures && figures.turn !== ended ? { figures } : {}),
    ...(active !== undefined && active !== ended ? { active } : {}),
    ...(delivery && delivery.result.seq > through ? { delivery } : {}),
    ...(snapshot && snapshot.seq > through ? { snapshot } : {}),
  };
}

/** UID of the turn whose end is acknowledged: the runner no longer has it. */
export function endedBy({ delivery, asking }: LinkView, through: number): string | undefined {
  if (delivery && delivery.result.seq <= through) return delivery.result.message.turn;
  const { seq, message } = asking?.request ?? {};
  return message?.process === 'Ended' && (seq as number) <= through ? message.turn : undefined;
}
