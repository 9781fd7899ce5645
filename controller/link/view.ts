import type { Pong, RefusalCode } from '../../core/frames/messages.ts';
import type { Figures, LinkView } from '../world/link-view.ts';

/** Changes of a link's view by a runner's messages and by acknowledgements; times in milliseconds since the epoch. */

/** Codes with which a runner refuses a turn that it never began. */
const NOT_BEGUN: ReadonlySet<RefusalCode> = new Set(['Suspended', 'NotRestored', 'Busy']);

/** View after the runner reports that it has started the turn. */
export function started(view: LinkView, turn: string, now: number): Pick<LinkView, 'started' | 'sent'> {
  return { ...startedSince(view, turn, now), sent: new Set([...view.sent, turn]) };
}

/**
 * Start of a turn by the controller's clock: a runner's clock may be arbitrary, so its start is `agoMs` before now, or
 * now.
 */
function startedSince(view: LinkView, turn: string, now: number, agoMs?: number): Pick<LinkView, 'started'> {
  if (agoMs === undefined && view.started?.turn === turn) return { started: view.started };
  // Times before the epoch are cut to it.
  return { started: { turn, at: new Date(Math.max(0, now - (agoMs ?? 0))).toISOString() } };
}

/**
 * View after an answer to a ping. `changeNumber`: number of the last control line that gave a turn or acknowledged the
 * end of one; the answer to an older ping does not know of that.
 */
export function answered(view: LinkView, pong: Pong, changeNumber: number, now: number): LinkView {
  const { active: _, told: __, figures: ___, ...rest } = view;
  const isOlder = pong.n < changeNumber;
  const turn = isOlder && pong.turn?.uid !== view.active ? undefined : pong.turn;
  const active = isOlder ? view.active : turn?.uid;
  const told = isOlder ? view.told : turn?.told;
  const figures = figuresOf(turn, now);
  return {
    ...rest,
    phase: 'Bound',
    sent: turn ? new Set([...view.sent, turn.uid]) : view.sent,
    ...(active ? { active } : {}),
    ...(told ? { told } : {}),
    ...(turn?.startedAt ? startedSince(view, turn.uid, now, turn.runningMs) : {}),
    ...(figures ? { figures } : {}),
    suspended: pong.suspended,
    lastActivity: now - pong.idleMs,
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
  return turn ? { ...view, sent: new Set([...view.sent, turn.uid]) } : view;
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

/**
 * View after an acknowledgement: everything through this frame is durable, so deliveries and turns that it covers are
 * dropped.
 */
export function acknowledged(view: LinkView, through: number): LinkView {
  const { delivery, asking: _, snapshot, active, started, figures, ...rest } = view;
  const ended = endedBy(view, through);
  return {
    ...rest,
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
