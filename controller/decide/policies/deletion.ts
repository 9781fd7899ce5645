import { reasons } from '../../../core/resources/reasons.ts';
import { wasNeverSent } from '../../observed/link-view.ts';
import { isGiven, isToAdopt } from '../../observed/own-turns.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { isRunnerless } from '../../settings/runnerless.ts';
import { ended } from '../../status/turn-status.ts';
import { type Draft, hasPassed, type Policy, wake } from '../draft.ts';
import { knownPodUID } from './pod.ts';
import { STOP_GRACE_MS } from './running.ts';

/**
 * Ends a session with a deletionTimestamp, which stays while a foreign finalizer holds it. The running turn is
 * cancelled and has the usual grace to end; waiting turns end; then the pod is deleted. Owner references take the rest.
 */
export const leave: Policy = (draft) => {
  const { pod, link, now, session } = draft.world;
  adoptTurns(draft);
  endWaiting(draft);
  // The incarnation is owned but has no pod: its slot is released.
  if (!pod && session.status?.podName && !knownPodUID(draft)) draft.released = true;
  if (!pod || pod.metadata.deletionTimestamp) return 'Stop';
  const { running } = draft.turns;
  if (running && mayStillEnd(draft, running, pod.metadata.uid)) return 'Stop';
  if (running) {
    const never = !isRunnerless(draft) && wasNeverSent(link, pod.metadata.uid, running.metadata.uid);
    const message = never ? reasons.SessionDeleted : 'The session was deleted while the turn ran; its pod was deleted.';
    const status = ended(running, { phase: 'Cancelled', reason: 'SessionDeleted', message }, now);
    draft.actions.push({ do: 'WriteTurn', turn: running, status });
  }
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its session is being deleted' });
  return 'Stop';
};

/** Adopts ownerless turns: only as the session's own can they be ended with it. */
function adoptTurns(draft: Draft): void {
  for (const turn of draft.turns.ownerless) {
    if (isToAdopt(draft.world.session, turn)) draft.actions.push({ do: 'AdoptTurn', turn });
  }
}

/** Ends turns that wait for their first run, another attempt or a decision; those without an index once it can be given. */
function endWaiting(draft: Draft): void {
  let last = draft.turns.lastIndex;
  for (const turn of draft.turns.live) {
    const { phase, attempt, index = ++last } = turn.status;
    if (isGiven(turn) || (turn.status.index === undefined && !draft.world.leaderIsReady)) continue;
    const before = phase === 'AwaitingApproval' ? 'anybody decided' : attempt ? 'its next attempt' : 'the turn ran';
    const message = `The session was deleted before ${before}.`;
    const status = ended(turn, { phase: 'Cancelled', reason: 'SessionDeleted', message }, draft.world.now);
    draft.actions.push({ do: 'WriteTurn', turn, status: { ...status, index } });
  }
}

/** Cancels the running turn once its runner answers, and gives the runner time to hand over the result. */
function mayStillEnd(draft: Draft, turn: CachedTurn, podUID: string): boolean {
  const { link, now } = draft.world;
  const { uid } = turn.metadata;
  if (isRunnerless(draft) || turn.status.podUID !== podUID || wasNeverSent(link, podUID, uid)) return false;
  const sent = link?.cancelSent?.get(uid);
  if (link?.phase === 'Bound' && !sent) draft.actions.push({ do: 'CancelTurn', turn: uid });
  if (sent) return !hasPassed(draft, sent.at, STOP_GRACE_MS);
  const deadline = (link?.openedAt ?? now) + STOP_GRACE_MS;
  if (deadline > now) wake(draft, deadline);
  return deadline > now || link?.phase === 'Bound';
}

/**
 * Waits for a pod whose deletion was requested but does not show in the cache. Whether or not the request arrived, it
 * must not be undone: a turn could be given to a runner that is about to be killed.
 */
export const deletionPending: Policy = (draft) => {
  const { pod, memory, session } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || memory.incarnation.deletionPending?.podUID !== pod.metadata.uid)
    return undefined;
  draft.suspending = session.status?.phase === 'Suspending';
  const { podUID: _, accepted, ...asked } = memory.incarnation.deletionPending;
  if (!accepted) draft.actions.push({ do: 'DeletePod', pod, ...asked });
  return 'Stop';
};
