import type { Pong, RefusalCode } from '../../core/frames/messages.ts';
import type { Figures, LinkView } from '../world/link-view.ts';

/** What a runner's words, and their acknowledgement, change in what is known of it; times in milliseconds since the epoch. */

/** Refusals of a turn by a runner that never began it. */
const NOT_BEGUN: ReadonlySet<RefusalCode> = new Set(['Suspended', 'NotRestored', 'Busy']);

/** It says that it has started the turn. */
export function started(view: LinkView, turn: string, now: number): Pick<LinkView, 'started' | 'sent'> {
  return { ...startedSince(view, turn, now), sent: new Set([...view.sent, turn]) };
}

/** The runner's clock may be any: what it says happened so long ago is taken from ours, else it happened just now. */
function startedSince(view: LinkView, turn: string, now: number, agoMs?: number): Pick<LinkView, 'started'> {
  if (agoMs === undefined && view.started?.turn === turn) return { started: view.started };
  // Longer ago than the epoch is no time.
  return { started: { turn, at: new Date(Math.max(0, now - (agoMs ?? 0))).toISOString() } };
}

/**
 * It answers a ping. `changeNumber`: of the last control line that gave a turn or acknowledged the end of one; the answer to an
 * older ping knows nothing of that.
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

/** Once its process has ended the result has them. */
function figuresOf(turn: Pong['turn'], now: number): Figures | undefined {
  if (turn?.phase !== 'Running' || turn.startedAt === undefined || turn.runningMs === undefined) return undefined;
  const { uid, attempt, startedAt, runningMs, usage } = turn;
  return { turn: uid, attempt, startedAt, runningMs, ...(usage ? { usage } : {}), at: now };
}

/** It answered a ping once: that it had the turn is still true. */
export function remembered(view: LinkView, { turn }: Pong): LinkView {
  return turn ? { ...view, sent: new Set([...view.sent, turn.uid]) } : view;
}

/** It did not take the turn that was sent last: where it never began it, its end would lose nothing of it. */
export function turnRefused(view: LinkView, code: RefusalCode): LinkView {
  const { active, sent, suspended } = view;
  if (!NOT_BEGUN.has(code) || active === undefined || view.started?.turn === active) return view;
  const others = new Set([...sent].filter((turn) => turn !== active));
  return { ...view, sent: others, suspended: suspended || code === 'Suspended' };
}

/** Everything up to this frame is durable: it is waited for no more, and what has ended with it is forgotten. */
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

/** The turn whose process has ended, by what is acknowledged: the runner has it no more. */
export function endedBy({ delivery, asking }: LinkView, through: number): string | undefined {
  if (delivery && delivery.result.seq <= through) return delivery.result.message.turn;
  const { seq, message } = asking?.request ?? {};
  return message?.process === 'Ended' && (seq as number) <= through ? message.turn : undefined;
}
