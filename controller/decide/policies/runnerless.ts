import type { StoredPod } from '../../../core/kube/builtin.ts';
import { formatDuration } from '../../../core/resources/duration.ts';
import { reasons } from '../../../core/resources/reasons.ts';
import { isGiven } from '../../observed/own-turns.ts';
import { isOver, ownContainer } from '../../observed/pod-status.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { limitsOf } from '../../settings/granted.ts';
import { endedByItself, isGated, turnOf } from '../../settings/runnerless.ts';
import { type Ending, ended } from '../../status/turn-status.ts';
import { type Draft, type Policy, waitedSince, wake } from '../draft.ts';
import { afterLoss, neverBegan } from '../loss.ts';
import { lifetimeOver } from '../suspend-reason.ts';

/** Runnerless pods: one turn each, gated until the turn is written Running, and read when they have ended. */

const runs = (draft: Draft, pod: StoredPod): CachedTurn | undefined =>
  draft.turns.running?.status.podUID === pod.metadata.uid ? draft.turns.running : undefined;

/** Concludes a turn whose program has ended, from its log or its pod; then the pod is deleted. */
export const read: Policy = (draft) => {
  const { pod } = draft.world;
  if (!pod || !isOver(pod)) return undefined;
  const turn = runs(draft, pod);
  if (turn && neverBegan(draft, pod.metadata.uid)) {
    draft.actions.push({ do: 'WriteTurn', turn, status: afterLoss(draft, turn) });
  } else if (turn) {
    const lost = endedByItself(pod) ? undefined : afterLoss(draft, turn);
    draft.actions.push({ do: 'CommitLog', turn, pod, ...(lost ? { lost } : {}) });
  } else if (!pod.metadata.deletionTimestamp) {
    draft.actions.push({ do: 'DeletePod', pod, why: 'its turn has ended' });
  }
  return 'Stop';
};

/** Ends a turn from outside, with its pod: a cancellation, its timeout, the end of the session's lifetime. */
export const stop: Policy = (draft) => {
  const { pod, now } = draft.world;
  const turn = pod && runs(draft, pod);
  const ending = turn && endOf(draft, turn, pod);
  if (!ending) return undefined;
  // The write comes first: any later reconcile deletes a pod whose turn has ended.
  draft.actions.push({ do: 'WriteTurn', turn, status: ended(turn, ending, now) });
  if (!pod.metadata.deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: ending.reason });
  return 'Stop';
};

function endOf(draft: Draft, turn: CachedTurn, pod: StoredPod): Ending | undefined {
  if (turn.spec.cancel) {
    const message = isGated(pod) ? 'The turn was cancelled before it ran.' : 'The turn was cancelled and stopped.';
    return { phase: 'Cancelled', reason: 'Cancelled', message };
  }
  if (lifetimeOver(draft)) {
    return { phase: 'TimedOut', reason: 'LifetimeExceeded', message: reasons.LifetimeExceeded };
  }
  const startedAt = ownContainer(pod)?.state?.running?.startedAt;
  if (!startedAt) return undefined;
  const { turnMs } = limitsOf(turn, draft.world);
  const deadline = waitedSince(draft, Date.parse(startedAt)) + turnMs;
  if (draft.world.now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  const message = `The turn ran longer than its timeout of ${formatDuration(turnMs)}; its pod was deleted.`;
  return { phase: 'TimedOut', reason: 'TurnTimedOut', message, fields: { startedAt } };
}

/** Deletes a pod whose turn is not the next, or while turns are held. */
export const unwantedPod: Policy = (draft) => {
  const { pod, session } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const next = draft.turns.running ?? draft.turns.live[0];
  const held = session.spec.suspend && !(next && isGiven(next));
  if (next && turnOf(pod) === next.metadata.uid && !held) return undefined;
  draft.actions.push({ do: 'DeletePod', pod, why: held ? 'turns are held' : 'its turn is not to run' });
  return 'Stop';
};

/** Lets the pod of a turn written Running run, and writes its input once it does. */
export const run: Policy = (draft) => {
  const { pod, memory } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || isOver(pod)) return undefined;
  const { uid } = pod.metadata;
  const begins = draft.actions.some((action) => action.do === 'WriteTurn' && action.status.podUID === uid);
  const turn = runs(draft, pod);
  if (!turn && !begins) return undefined;
  if (isGated(pod)) draft.actions.push({ do: 'LetRun', pod });
  const isRunning = ownContainer(pod)?.state?.running;
  if (turn && isRunning && memory.incarnation.inputGiven?.podUID !== uid)
    draft.actions.push({ do: 'GiveInput', turn, pod });
  return undefined;
};
