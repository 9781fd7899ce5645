import { limitsOf, type TurnLimits } from '../../settings/granted.ts';
import { ended, lostAttempt } from '../../status/turn-status.ts';
import { waitingProcess } from '../../world/approvals.ts';
import { type Delivery, wasNeverSent } from '../../world/link-view.ts';
import { saysItsEnd } from '../../world/pod-end.ts';
import { isOver } from '../../world/pod-status.ts';
import type { CachedTurn } from '../../world/world.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { causeOf, lossMessage, mayTryAgain } from '../loss.ts';

/** The running turn: its result, its cancellation, its time-out. */

/** What the runner gets beyond a turn's time-out, or after a cancellation, before its pod is deleted. */
export const STOP_GRACE_MS = 20_000;

/** How long the cause of a pod's end is waited for: the kubelet reports it after the runner has said goodbye. */
const CAUSE_MS = 15_000;

/**
 * A delivered result is committed; one that belongs to no running turn is only acknowledged. Of a pod that goes anyway
 * nothing needs to be acknowledged.
 */
export const collect: Policy = (draft) => {
  const { link, pod, memory } = draft.world;
  const delivery = link?.delivery;
  if (!delivery) return undefined;
  const { turn: uid, attempt, error } = delivery.result.message;
  // One whose process waits for a decision may end without it.
  const turn = draft.turns.running ?? waitingProcess(draft);
  const isFor = turn?.metadata.uid === uid && turn.status.attempt === attempt && turn.status.podUID === link.podUID;
  if (!turn || !isFor) {
    const goes =
      !pod || pod.metadata.deletionTimestamp || isOver(pod) || memory.deletionPending?.podUID === pod.metadata.uid;
    if (goes) return undefined;
    draft.actions.push({ do: 'Acknowledge', delivery });
    return 'Stop';
  }
  if (error?.code === 'PodLost') return collectStopped(draft, turn, delivery);
  draft.actions.push({ do: 'Commit', turn, delivery });
  return 'Stop';
};

/** The runner was told to stop while the turn ran: why is for Kubernetes to say. */
function collectStopped(draft: Draft, turn: CachedTurn, delivery: Delivery): 'Stop' {
  const { pod, now } = draft.world;
  const until = Date.parse(delivery.result.message.finishedAt) + CAUSE_MS;
  // A clock that is far from ours is not waited for.
  if (pod && !saysItsEnd(pod) && now < until && until - now <= 2 * CAUSE_MS) {
    wake(draft, until);
    return 'Stop';
  }
  const cause = causeOf(draft, turn.status.podUID);
  const { reason } = cause;
  const message = lossMessage(draft, cause);
  if (mayTryAgain(turn, cause)) {
    draft.actions.push({ do: 'WriteTurn', turn, status: lostAttempt(turn, { reason, message }, now) });
  } else {
    draft.actions.push({ do: 'Commit', turn, delivery, lost: { reason, message } });
  }
  return 'Stop';
}

/** When the turn was started at the latest: where the runner has not said so, its pod may still have had to start. */
function startOf({ world }: Draft, turn: CachedTurn, { startMs }: TurnLimits): number {
  const { started } = world.link ?? {};
  const { approval } = turn.status;
  const resumedAt = approval && turn.status.conditions?.find(({ type }) => type === 'Running')?.lastTransitionTime;
  // Its time stood still while it waited.
  if (resumedAt && approval.process === 'Alive') return Date.parse(resumedAt) - approval.ranMs;
  if (started?.turn === turn.metadata.uid) return Date.parse(started.at) - (approval?.ranMs ?? 0);
  const given = turn.status.conditions?.find((condition) => condition.type === 'Running')?.lastTransitionTime;
  return Date.parse(given ?? turn.metadata.creationTimestamp) + startMs;
}

/** The runner keeps the time-out; a pod that is past it and its grace is deleted. */
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
  const message = 'The turn ran past its time-out and its pod did not stop it; the pod was deleted.';
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn past its time-out' },
    { do: 'WriteTurn', turn, status: ended(turn, { phase: 'TimedOut', reason: 'TurnTimedOut', message }, now) },
  );
  return 'Stop';
};

/** A running turn is cancelled by its runner; one that no runner has seen ends at once. */
export const cancel: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const turn = draft.turns.running ?? waitingProcess(draft);
  if (!turn?.spec.cancel || !pod) return undefined;
  const cancelled = (message: string) => ended(turn, { phase: 'Cancelled', reason: 'Cancelled', message }, now);
  const never = wasNeverSent(link, pod.metadata.uid, turn.metadata.uid);
  const sent = link?.cancelSent?.get(turn.metadata.uid);
  if (never || (link?.refused?.code === 'UnknownTurn' && sent)) {
    draft.actions.push({ do: 'WriteTurn', turn, status: cancelled('The turn was cancelled before it ran.') });
    return 'Stop';
  }
  if (link?.phase !== 'Bound') return undefined;
  if (!sent) {
    draft.actions.push({ do: 'CancelTurn', turn: turn.metadata.uid });
    return undefined;
  }
  const deadline = sent.at + STOP_GRACE_MS;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  draft.actions.push(
    { do: 'DeletePod', pod, why: 'turn not cancelled in time' },
    { do: 'WriteTurn', turn, status: cancelled('The turn did not stop when it was cancelled; its pod was deleted.') },
  );
  return 'Stop';
};

/** What the runner works on although its Turn is gone, or has ended without it, is stopped. */
export const unwanted: Policy = (draft) => {
  const { pod, link, now } = draft.world;
  const active = link?.phase === 'Bound' ? link.active : undefined;
  if (!pod || pod.metadata.deletionTimestamp || !active) return undefined;
  if (draft.turns.live.some((turn) => turn.metadata.uid === active)) return undefined;
  const sent = link?.cancelSent?.get(active);
  if (!sent) {
    draft.actions.push({ do: 'CancelTurn', turn: active });
    return 'Stop';
  }
  const deadline = sent.at + STOP_GRACE_MS;
  if (now >= deadline) draft.actions.push({ do: 'DeletePod', pod, why: 'it works on a turn that is gone' });
  else wake(draft, deadline);
  return 'Stop';
};
