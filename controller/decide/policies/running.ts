import { waitingProcess } from '../../observed/approvals.ts';
import { type Delivery, wasNeverSent } from '../../observed/link-view.ts';
import { saysItsEnd } from '../../observed/pod-end.ts';
import { isLeaving } from '../../observed/pod-status.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { limitsOf, type TurnLimits } from '../../settings/granted.ts';
import { ended } from '../../status/turn-status.ts';
import type { Draft, Policy } from '../draft.ts';
import { hasPassed, waitedSince, wake } from '../draft.ts';
import { causeOf, lossMessage, lost, mayTryAgain } from '../loss.ts';

/** The running turn: its result, its cancellation, its timeout. */

/** Grace for the runner beyond a turn's timeout, or after a cancellation, before its pod is deleted. */
export const STOP_GRACE_MS = 20_000;

/** Maximum wait for the cause of a pod's end: the kubelet reports it after the runner's `bye`. */
const CAUSE_MS = 15_000;

/**
 * Commits a delivered result; one that belongs to no running turn is only acknowledged. A terminating pod needs no
 * acknowledgement.
 */
export const collect: Policy = (draft) => {
  const { link } = draft.world;
  const delivery = link?.delivery;
  if (!delivery) return undefined;
  const { turn: uid, attempt, error } = delivery.result.message;
  // The cache of a new leader can be behind: an earlier turn that has ended may still look as if it ran.
  const named = draft.turns.live.find(({ metadata, status }) => metadata.uid === uid && status.phase === 'Running');
  // A turn whose process waits for a decision may end without it.
  const turn = named ?? draft.turns.running ?? waitingProcess(draft);
  const isFor = turn?.metadata.uid === uid && turn.status.attempt === attempt && turn.status.podUID === link.podUID;
  if (!turn || !isFor) {
    if (isLeaving(draft.world)) return undefined;
    draft.actions.push({ do: 'Acknowledge', delivery });
    return 'Stop';
  }
  if (error?.code === 'PodLost') return collectStopped(draft, turn, delivery);
  draft.actions.push({ do: 'Commit', turn, delivery });
  return 'Stop';
};

/** Handles the result of a runner that got SIGTERM while the turn ran: Kubernetes reports the cause. */
function collectStopped(draft: Draft, turn: CachedTurn, delivery: Delivery): 'Stop' {
  const { pod, now } = draft.world;
  const until = Date.parse(delivery.result.message.finishedAt) + CAUSE_MS;
  // A wait by a clock far from this controller's is cut short.
  if (pod && !saysItsEnd(pod) && now < until && until - now <= 2 * CAUSE_MS) {
    wake(draft, until);
    return 'Stop';
  }
  const cause = causeOf(draft, turn.status.podUID);
  // A state that filled the disk would have every later pod evicted that restores it.
  if (mayTryAgain(turn, cause) || cause.reason === 'DiskFull') {
    draft.actions.push({ do: 'WriteTurn', turn, status: lost(draft, turn, cause) });
  } else {
    const { reason } = cause;
    draft.actions.push({ do: 'Commit', turn, delivery, lost: { reason, message: lossMessage(draft, cause) } });
  }
  return 'Stop';
}

/**
 * Latest start of the turn. Where the runner has not reported it, the pod may still have had to start, and the API server's
 * clock may have been set since the turn was written. The turn then counts from the time at which this leader looked at its
 * pod, or gave it.
 */
function startOf(draft: Draft, turn: CachedTurn, { startMs }: TurnLimits): number {
  const { now, monotonic, memory, link } = draft.world;
  const { started, openedAt = 0 } = link ?? {};
  const { approval } = turn.status;
  const resumedAt = approval && turn.status.conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  // Time spent waiting for an approval does not count.
  if (resumedAt && approval.process === 'Alive')
    return waitedSince(draft, Math.max(Date.parse(resumedAt), openedAt)) - approval.ranMs;
  if (started?.turn === turn.metadata.uid)
    return waitedSince(draft, Date.parse(started.at), started.heardAt) - (approval?.ranMs ?? 0);
  const given = turn.status.conditions?.find((condition) => condition.type === 'Running')?.lastTransitionTime;
  const gaveAt = memory.gaveAt === undefined ? 0 : now - (monotonic - memory.gaveAt);
  const since = waitedSince(draft, Math.max(Date.parse(given ?? turn.metadata.creationTimestamp), openedAt));
  return Math.max(since, gaveAt) + startMs;
}

/** Deletes a pod whose turn is past its timeout and grace; the runner enforces the timeout itself. */
export const overdue: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const turn = draft.turns.running;
  if (!turn || !pod || turn.status.podUID !== pod.metadata.uid || !link) return undefined;
  const limits = limitsOf(turn, draft.world);
  const deadline = startOf(draft, turn, limits) + limits.turnMs + STOP_GRACE_MS;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  const message = 'The turn ran past its timeout and its pod did not stop it; the pod was deleted.';
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn past its timeout' },
    { do: 'WriteTurn', turn, status: ended(turn, { phase: 'TimedOut', reason: 'TurnTimedOut', message }, now) },
  );
  return 'Stop';
};

/** Cancels a running turn through its runner; a turn that no runner received ends at once. */
export const cancel: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const turn = draft.turns.running ?? waitingProcess(draft);
  if (!turn?.spec.cancel || !pod) return undefined;
  const cancelled = (message: string) => ended(turn, { phase: 'Cancelled', reason: 'Cancelled', message }, now);
  const never = wasNeverSent(link, pod.metadata.uid, turn.metadata.uid);
  const sent = link?.cancelSent?.get(turn.metadata.uid);
  if (never || sent?.unknown) {
    // A suspension stops the process that has asked; the turn goes on with the decision.
    const when = turn.status.approval ? 'while it waited for a decision' : 'before it ran';
    draft.actions.push({ do: 'WriteTurn', turn, status: cancelled(`The turn was cancelled ${when}.`) });
    return 'Stop';
  }
  if (link?.phase !== 'Bound') return undefined;
  if (!sent) {
    draft.actions.push({ do: 'CancelTurn', turn: turn.metadata.uid });
    return undefined;
  }
  if (!hasPassed(draft, sent.at, STOP_GRACE_MS)) return undefined;
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn not cancelled in time' },
    { do: 'WriteTurn', turn, status: cancelled('The turn did not stop when it was cancelled; its pod was deleted.') },
  );
  return 'Stop';
};

/** Stops the runner's turn when that Turn is gone, or has ended without it. */
export const unwanted: Policy = (draft) => {
  const { pod, link } = draft.world;
  const active = link?.phase === 'Bound' ? link.active : undefined;
  if (!pod || pod.metadata.deletionTimestamp || !active) return undefined;
  if (draft.turns.live.some((turn) => turn.metadata.uid === active)) return undefined;
  const sent = link?.cancelSent?.get(active);
  if (!sent) {
    draft.actions.push({ do: 'CancelTurn', turn: active });
    return 'Stop';
  }
  if (hasPassed(draft, sent.at, STOP_GRACE_MS))
    draft.actions.push({ do: 'DeletePod', pod, why: 'it works on a turn that is gone' });
  return 'Stop';
};
