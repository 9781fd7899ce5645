import type { StoredPod } from '../../core/kube/builtin.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { wasNeverSent } from '../observed/link-view.ts';
import { type PodEnd, podEnd } from '../observed/pod-end.ts';
import { startedContainer, wasNeverCreated } from '../observed/pod-status.ts';
import type { CachedTurn, Problem } from '../observed/world.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless, wasLetRun } from '../settings/runnerless.ts';
import { awaiting } from '../status/approval-status.ts';
import { ended, lostAttempt, queued } from '../status/turn-status.ts';
import type { Draft } from './draft.ts';

/** Turns whose pod is lost: queued again, retried or failed. */

/**
 * Cause of the pod's end, as far as known: from the pod, present or last observed, or from this controller's own
 * deletion.
 */
export function causeOf(draft: Draft, podUID: string | undefined): PodEnd {
  const { settings, world } = draft;
  const { deletionPending } = world.memory.incarnation;
  return podEnd(podLastSeen(draft, podUID), {
    memoryLimit: isProblem(settings) ? undefined : settings.resources.limits.memory,
    deletedBecause:
      deletionPending !== undefined && deletionPending.podUID === podUID ? deletionPending.why : undefined,
  });
}

function podLastSeen({ world: { pod, memory } }: Draft, uid: string | undefined): StoredPod | undefined {
  return [pod, memory.incarnation.lastPod].find((seen) => seen?.metadata.uid === uid);
}

/**
 * Status of a turn after its pod is lost: queued again if no runner ever received it, retried if it may be, else failed
 * with the cause.
 */
export function afterLoss(draft: Draft, turn: CachedTurn): TurnStatus {
  const { link, now } = draft.world;
  const { podUID } = turn.status;
  const pod = podLastSeen(draft, podUID);
  const problem = neverBegan(draft, podUID);
  if (problem) return ended(turn, { phase: 'Failed', ...problem }, now);
  // The cached pod proves nothing: a runner answers over attach long before, perhaps to an earlier leader.
  const neverRan =
    isRunnerless(draft) && pod?.status?.phase === 'Pending' && !startedContainer(pod) && !wasLetRun(draft, podUID);
  if (neverRan || wasNeverSent(link, podUID, turn.metadata.uid)) {
    const { approval } = turn.status;
    if (approval) return awaiting(turn, approval, {}, now);
    return queued(turn, turn.status.index ?? draft.turns.lastIndex, 'Queued', now);
  }
  return lost(draft, turn, causeOf(draft, podUID));
}

/** Reason for giving up a pod whose program is known never to have run. */
export function neverBegan(draft: Draft, podUID: string | undefined): Problem | undefined {
  const { deletionPending } = draft.world.memory.incarnation;
  const pod = podLastSeen(draft, podUID);
  if (deletionPending?.podUID !== podUID || !pod || !wasNeverCreated(pod)) return undefined;
  return deletionPending?.problem;
}

/** Status of a turn that its pod's end cut off: retried if it may be, else failed with the cause. */
export function lost(draft: Draft, turn: CachedTurn, cause: PodEnd): TurnStatus {
  const { now } = draft.world;
  const { reason } = cause;
  const message = lossMessage(draft, cause);
  if (mayTryAgain(turn, cause)) return lostAttempt(turn, { reason, message }, now);
  return ended(turn, { phase: 'Failed', reason, message }, now);
}

const AGAIN = 'give the turn again, or let spec.retry do it, if it may run twice';
const ADVICE: Record<PodEnd['reason'], string> = {
  PodLost: AGAIN,
  Evicted: AGAIN,
  OOMKilled: 'raise resources.limits.memory, or give the agent less to do',
  DiskFull: 'raise resources.limits.ephemeral-storage, let the agent write less, or give it a workspace on a volume',
};

/** Message for users about a lost turn. */
export function lossMessage(draft: Draft, cause: PodEnd): string {
  const advice = ADVICE[cause.reason];
  const pod = draft.world.session.status?.podName ?? 'of the turn';
  return `Pod ${pod} ${cause.message} while the turn ran. What the turn did is unknown: ${advice}. The session goes on from its last stored state.`;
}

/**
 * Reports whether a lost turn may be retried. A pod that its own agent overloaded would fail again, and a cancelled
 * turn stays cancelled.
 */
export function mayTryAgain(turn: CachedTurn, cause: PodEnd): boolean {
  return cause.fromOutside && !turn.spec.cancel && (turn.status.attempt ?? 1) < (turn.spec.retry?.maxAttempts ?? 1);
}
