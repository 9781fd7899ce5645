import { formatDuration } from '../../core/resources/duration.ts';
import { JUST_ACTIVE_MS, lastActivity } from '../observed/activity.ts';
import { isParked } from '../observed/approvals.ts';
import { isToAdopt } from '../observed/own-turns.ts';
import { isRunnerOutdated } from '../observed/runner-outdated.ts';
import { isProblem } from '../settings/effective.ts';
import { keepsState } from '../settings/persistence.ts';
import { timeoutMs } from '../settings/timeouts.ts';
import type { SuspensionReason } from './actions.ts';
import { type Draft, wake } from './draft.ts';
import { groupWait } from './group.ts';
import { lacksItsTurn } from './missing-turn.ts';
import { roomWait } from './room.ts';

/** Reasons for which a session should have no pod. */

/**
 * State of `spec.suspendRequest`: not observed yet, to be carried out, done, or void because a later turn was given.
 */
export function suspendRequest(draft: Draft): 'None' | 'Unseen' | 'Active' | 'Done' | 'Void' {
  const id = draft.world.session.spec.suspendRequest;
  if (!id) return 'None';
  const handled = draft.world.session.status?.suspendHandled;
  if (handled?.id !== id) return 'Unseen';
  if (draft.turns.lastIndex > handled.afterTurn || hasNewTurn(draft)) return 'Void';
  return handled.done ? 'Done' : 'Active';
}

/** Reports whether there is a turn without an index: it comes after all that have one, even before it is adopted. */
export function hasNewTurn({ world: { session }, turns: { live, ownerless } }: Draft): boolean {
  return live.some(({ status }) => status.index === undefined) || ownerless.some((turn) => isToAdopt(session, turn));
}

export function suspensionReason(draft: Draft): SuspensionReason | undefined {
  const { session, preemptFor, node } = draft.world;
  if (session.spec.suspend) return 'Held';
  // A session without stored state would lose it with its pod.
  const keeps = keepsState(session.spec, draft.world.class);
  // The runner gets no further turn: those that wait run in the next pod, also those that a request lets go first.
  if (keeps && isRunnerOutdated(draft.world)) return 'RunnerOutdated';
  // A request is carried out after the turns given before it, which may wait for who is to have the slot.
  if (keeps && preemptFor && cannotUseSlot(draft) && !isJustActive(draft)) return 'Preempted';
  if (isToRestart(draft)) return 'Restart';
  if (suspendRequest(draft) === 'Active') return 'Requested';
  if (rests(draft) && lacksItsTurn(draft)) return 'Turnless';
  if (!keeps) return undefined;
  if (preemptFor && (rests(draft) || waitsForPeople(draft)) && !isJustActive(draft)) return 'Preempted';
  if (!rests(draft)) return undefined;
  if (node?.cordoned) return 'Moves';
  return isIdle(draft) ? 'Idle' : undefined;
}

/** Reports whether a restart was requested since the pod was made. A pod that could have no successor is kept. */
function isToRestart({ world: { session }, settings }: Draft): boolean {
  const { restartRequest } = session.spec;
  return restartRequest !== undefined && restartRequest !== session.status?.restartRequest && !isProblem(settings);
}

/** The reason as a sentence, where the session does not stay suspended for a user. */
export function whySuspended(draft: Draft): string | undefined {
  const { session, class: sessionClass, preemptFor, link, installation } = draft.world;
  switch (suspensionReason(draft)) {
    case 'Restart':
      return 'A restart was asked for: the next turn starts a new pod.';
    case 'Turnless':
      return 'It takes one turn, and none has come.';
    case 'Idle':
      return `Nothing had happened for timeouts.idle (${formatDuration(timeoutMs('idle', session.spec, sessionClass))}).`;
    case 'Preempted':
      return `Its slot is needed for ${preemptFor?.for}.`;
    case 'RunnerOutdated':
      return `Its runner speaks protocol ${link?.protocol}, the controller ${installation.protocol}.`;
    case 'Moves':
      return 'Its node takes no pods any more.';
    default:
      return undefined;
  }
}

/** Reports whether the session need not rest: then neither turns that wait for a person nor activity speak against it. */
export function isDue(reason: SuspensionReason): boolean {
  return reason === 'Held' || reason === 'Requested' || replacesPod(reason);
}

/** Reports whether the turns that wait, and one that goes on with a decision, are for the next pod. */
export function replacesPod(reason: SuspensionReason): boolean {
  return reason === 'Restart' || reason === 'RunnerOutdated';
}

/**
 * Reports whether the session rests: no turn waits or runs, and a runner that answers works on none and owes no result.
 */
function rests({ turns, world: { link } }: Draft): boolean {
  return turns.live.length + turns.ownerless.length === 0 && link?.phase === 'Bound' && !link.active && !link.delivery;
}

/**
 * Reports whether the session was just active, by the runner's report too, which may come only when it is asked to
 * suspend.
 */
function isJustActive(draft: Draft): boolean {
  const until = lastActivity(draft.world) + JUST_ACTIVE_MS;
  if (draft.world.now >= until) return false;
  wake(draft, until);
  return true;
}

/** Reports whether the session waits for nothing but an approval. */
function waitsForPeople(draft: Draft): boolean {
  const { link } = draft.world;
  return isParked(draft) && link?.phase === 'Bound' && !link.delivery && !link.asking;
}

/** Reports whether the next turn waits for its concurrency group or for room in the store, so that the session cannot use its slot. */
function cannotUseSlot(draft: Draft): boolean {
  const { link } = draft.world;
  const isFree = link?.phase === 'Bound' && !link.active && !link.delivery;
  return isFree && (groupWait(draft)?.reason === 'GroupLimit' || roomWait(draft) !== undefined);
}

/**
 * Reports whether `timeouts.idle` has passed since the last activity. The runner reports activity too: that of the agent, and that of
 * clients' commands. Idle time counts from the pod's creation at the earliest: a session that waited for its slot has not used it yet.
 */
function isIdle(draft: Draft): boolean {
  const { session, class: sessionClass, pod, link, now } = draft.world;
  if (!pod || link?.lastActivity === undefined) return false;
  const ofCommands = Math.min(link.commandActivity ?? 0, now);
  const since = Math.max(lastActivity(draft.world), ofCommands, Date.parse(pod.metadata.creationTimestamp));
  const deadline = since + timeoutMs('idle', session.spec, sessionClass);
  if (now >= deadline) return true;
  wake(draft, deadline);
  return false;
}

/** Reports whether `timeouts.lifetime` is over: for good, once the status says so. */
export function lifetimeOver(draft: Draft): boolean {
  const { session, class: sessionClass, now } = draft.world;
  const finished = session.status?.conditions?.find(({ type }) => type === 'Finished');
  if (finished?.status === 'True') return finished.reason === 'LifetimeExceeded';
  const deadline = Date.parse(session.metadata.creationTimestamp) + timeoutMs('lifetime', session.spec, sessionClass);
  if (now >= deadline) return true;
  wake(draft, deadline);
  return false;
}

/** Reports whether the session takes no more turns: its only turn has ended, or its lifetime is over. */
export function isFinished(draft: Draft): boolean {
  return hadItsTurn(draft) || lifetimeOver(draft);
}

/** Reports whether the only turn of a session with `turns: One` has ended. */
export function hadItsTurn(draft: Draft): boolean {
  const { session } = draft.world;
  if (session.spec.turns !== 'One') return false;
  if (session.status?.lastTurn !== undefined) return true;
  // A later turn is refused while the first one waits or runs; that does not finish the session. Beside a first turn
  // that has ended, a turn without an index is a later one.
  const [ended] = draft.turns.uncounted;
  const [live] = draft.turns.live;
  return ended !== undefined && (live?.status.index === undefined || (ended.status.index ?? 0) < live.status.index);
}
