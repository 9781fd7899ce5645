import type { StoredPod } from '../../../core/kube/builtin.ts';
import { wasNeverSent } from '../../observed/link-view.ts';
import { isOver, podProblem, startedContainer } from '../../observed/pod-status.ts';
import { isFromPool } from '../../observed/session-pods.ts';
import { type Draft, type Policy, waitedSince, wake } from '../draft.ts';
import { afterLoss } from '../loss.ts';
import { claimLost } from '../start-failures.ts';
import { begunAt, boundBefore, startMs, wasBound } from './starting.ts';

/** Pods of pools that a session takes: claimed, bound, or given up for a pod of the session's own. */

/**
 * Time within which the runner of a claimed pod answers the bind: about that of a cold start. It answers within some milliseconds
 * on a machine that has time, and within some hundred in a burst of claims, where giving the pod up would only add to the load.
 */
const BIND_MS = 1_000;
/** The same for a runner that may still be busy with its own start, and the age of its pod up to which it may. */
const YOUNG_BIND_MS = 5_000;
const YOUNG_MS = 10_000;
/** Time within which a claimed pod is attached by a leader that has just found it. */
const ATTACH_MS = 5_000;
/**
 * Time within which a pod that was claimed while it started has to answer, and at most half of `timeouts.start`. The pod may hang
 * where a pod of the session's own would start, so enough time is left to try one before the turn ends.
 */
const START_MS = 120_000;

/** Reports whether a runner of the pod has served the session; the pod may be gone. */
function hasServed({ world, turns }: Draft, podUID: string): boolean {
  const ran = [turns.running, ...turns.live, ...turns.uncounted].some((turn) => turn?.status.podUID === podUID);
  return ran || world.memory.incarnation.lastPod?.metadata.uid === podUID;
}

/** Claims the pod of a pool that the status names. A pod that another session has, or that is gone, is no longer claimed. */
export const claim: Policy = (draft) => {
  const { session, pod, unclaimed, memory, leaderIsReady } = draft.world;
  const { podName, podUID } = session.status ?? {};
  if (pod || podUID === undefined || !isFromPool(podName)) return undefined;
  if (hasServed(draft, podUID) || boundBefore(draft, podUID)) return undefined;
  const lost = memory.incarnation.claimLost;
  if (lost?.podUID === podUID) {
    draft.startFailed = claimLost(podName, lost.why);
    draft.released = true;
    return 'Stop';
  }
  if (leaderIsReady) draft.actions.push({ do: 'ClaimPod', podUID, ...(unclaimed ? { pod: unclaimed } : {}) });
  return 'Stop';
};

/**
 * Gives up a claimed pod that ends or does not answer before it is bound: nothing was given to it, so a turn that is written
 * Running for it is queued again. The session takes its next incarnation at once, with a pod of its own.
 */
export const unbound: Policy = (draft) => {
  const { pod, link } = draft.world;
  if (!pod || !isFromPool(pod.metadata.name)) return undefined;
  const { uid, name, deletionTimestamp } = pod.metadata;
  const turn = draft.turns.live.find(({ status }) => status.podUID === uid);
  if (wasBound(draft, uid) || (turn && !wasNeverSent(link, uid, turn.metadata.uid))) return undefined;
  const why = problemWith(draft, pod);
  if (why === undefined) return undefined;
  draft.startFailed = claimLost(name, why);
  draft.released = true;
  if (turn) draft.actions.push({ do: 'WriteTurn', turn, status: afterLoss(draft, turn) });
  draft.actions.push({ do: 'CloseLink' });
  if (!deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: `it was claimed, and ${why}` });
  return 'Stop';
};

/** Why the claimed pod is given up, as a clause that follows its name; undefined while it may still be bound. */
function problemWith(draft: Draft, pod: StoredPod): string | undefined {
  const { link, now } = draft.world;
  if (pod.metadata.deletionTimestamp) return 'was deleted before it was bound';
  if (isOver(pod)) return 'ended before it was bound';
  const problem = !link || link.phase === 'Opening' ? podProblem(pod) : undefined;
  if (problem) return `did not start (${problem.message})`;
  if (link?.phase === 'Foreign' || link?.refused?.code === 'AlreadyBound') return 'is bound to another session';
  const deadline = boundBy(draft, pod);
  if (deadline === undefined) return undefined;
  const hasAnswered = link?.phase !== 'Opening' && link?.phase !== 'Binding';
  if (now >= deadline) return hasAnswered ? 'was not bound within timeouts.start' : 'did not answer';
  wake(draft, deadline);
  return undefined;
}

/** Time by which the pod is bound, or its runner answers, milliseconds since the epoch; undefined: not limited here. */
function boundBy(draft: Draft, pod: StoredPod): number | undefined {
  const { link, memory } = draft.world;
  const claimedAt = begunAt(draft, pod);
  if (link?.phase === 'Binding' && link.bindSentAt !== undefined) {
    const isYoung = link.bindSentAt - Date.parse(pod.metadata.creationTimestamp) < YOUNG_MS;
    const deadline = waitedSince(draft, link.bindSentAt) + (isYoung ? YOUNG_BIND_MS : BIND_MS);
    return Math.min(deadline, claimedAt + startMs(draft));
  }
  if (link?.phase === 'Opening') {
    // A link that is older than the claim has waited for the start: the pod had not answered when it was claimed.
    const openedAt = waitedSince(draft, link.openedAt);
    const hasStarted = startedContainer(pod) && openedAt > claimedAt;
    return hasStarted ? openedAt + ATTACH_MS : claimedAt + Math.min(START_MS, startMs(draft) / 2);
  }
  // A problem of the session itself, such as a Secret that is missing, would keep a pod of its own from being bound too.
  return !link || memory.incarnation.startProblem ? undefined : claimedAt + startMs(draft);
}
