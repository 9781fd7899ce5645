import type { StoredSession, StoredTurn } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { touchedAt } from '../observed/activity.ts';
import { decisionFor } from '../observed/approvals.ts';
import { cannotUseSlot, isOthers, isOwn } from '../observed/own-turns.ts';
import type { CachedApproval, World } from '../observed/world.ts';
import { timeoutMs } from '../settings/timeouts.ts';
import type { SuspensionReason } from './actions.ts';
import { isDue, replacesPod } from './suspend-reason.ts';

type LiveSession = Pick<StoredSession, 'metadata' | 'status'> & {
  spec: Pick<StoredSession['spec'], 'suspend' | 'suspendRequest' | 'restartRequest'>;
};
type LiveTurn = Pick<StoredTurn, 'metadata' | 'status'>;

/** Live reads made after the runner has begun to refuse turns. */
export interface Recheck {
  /** Milliseconds since the epoch. */
  now: number;
  session: LiveSession;
  /** Turns that name the session, without those that are left out as too large. */
  turns: readonly LiveTurn[];
  /** Approvals that name its turn that waits for one. */
  approvals: readonly CachedApproval[];
}

/** The part of a suspension's world that decides on the veto. */
export type Suspending = Pick<World, 'session' | 'class'> & {
  link?: Pick<NonNullable<World['link']>, 'lastActivity' | 'commandActivity'> | undefined;
};

/** Reason against the suspension that lies in the session itself: another has its name, or the wish has changed. */
export function wishVeto({ session }: Pick<World, 'session'>, live: LiveSession): string | undefined {
  if (live.metadata.uid !== session.metadata.uid) return 'another session has the name';
  const [now, before] = [live.spec, session.spec];
  const isSame =
    now.suspend === before.suspend &&
    now.suspendRequest === before.suspendRequest &&
    now.restartRequest === before.restartRequest;
  return isSame ? undefined : 'it was asked for otherwise';
}

/** The turn that waits for a person, among turns of the session that have not ended. */
export function askingTurn<T extends LiveTurn>(
  { session }: Pick<World, 'session'>,
  turns: readonly T[],
): T | undefined {
  return waitingTurns(session, turns).find(({ status }) => status?.phase === 'AwaitingApproval');
}

/** Reason against giving up the pod that has come up since the decision to suspend; undefined where there is none. */
export function suspensionVeto(
  world: Suspending,
  reason: SuspensionReason,
  askedAt: number,
  { now, session: live, turns, approvals }: Recheck,
): string | undefined {
  const { session } = world;
  const otherwise = wishVeto(world, live);
  if (otherwise) return otherwise;
  const asking = askingTurn(world, turns);
  const decided = asking && decisionOn(asking, approvals);
  if (decided && !live.spec.suspend && !replacesPod(reason)) return decided;
  const waiting = waitingTurns(session, turns).filter((turn) => !runsLater(turn, reason));
  const [waits] = waiting;
  const mayWait = reason === 'Preempted' || isDue(reason);
  const isHeldUp = (mayWait && asking) || (reason === 'Preempted' && noneUsesSlot(waiting));
  if (waits && !isHeldUp && !live.spec.suspend) return `turn ${waits.metadata.name}`;
  if (isDue(reason)) return undefined;
  if (live.metadata.generation !== session.metadata.generation) return 'the session was changed';
  // An idle session must have rested for all of timeouts.idle. A preempted one is spared only for activity since the suspension began.
  const since = reason === 'Idle' ? now - timeoutMs('idle', session.spec, world.class) : askedAt;
  // The end of a counted turn is part of the decision.
  const counted = live.status?.lastTurn?.index ?? 0;
  const ended = turns.filter((turn) => isOwn(session, turn) && (turn.status?.index ?? 0) > counted);
  const active = Math.max(
    touchedAt(live, now),
    world.link?.lastActivity ?? 0,
    // Commands keep a session from being idle, and from no other suspension.
    reason === 'Idle' ? (world.link?.commandActivity ?? 0) : 0,
    ...ended.map(({ status }) => Date.parse(status?.finishedAt ?? '') || 0),
  );
  return active > since ? 'activity' : undefined;
}

/** Reports whether the turn is one that waits for another pod than the present one. */
function runsLater({ status }: LiveTurn, reason: SuspensionReason): boolean {
  return replacesPod(reason) && status?.phase !== 'Running';
}

/** A turn without an owner counts, as it is about to be adopted. Another session's turn does not. */
export function waitingTurns<T extends LiveTurn>(session: World['session'], turns: readonly T[]): T[] {
  return turns.filter((turn) => !isTerminal(turn.status?.phase) && !isOthers(session, turn));
}

/** Reports whether these turns of a session wait for its concurrency group or for room: they cannot use its slot. */
export function noneUsesSlot(waiting: readonly LiveTurn[]): boolean {
  return waiting.some(cannotUseSlot) && waiting.every(({ status }) => status?.phase !== 'Running');
}

function decisionOn({ metadata, status = {} }: LiveTurn, approvals: readonly CachedApproval[]): string | undefined {
  const decided = status.approval?.decided ?? decisionFor(approvals, { metadata, status });
  return decided && `the decision on request ${status.approval?.id}`;
}
