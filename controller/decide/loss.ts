import type { StoredPod } from '../../core/kube/builtin.ts';
import type { TurnStatus } from '../../core/resources/turn.ts';
import { isProblem } from '../settings/effective.ts';
import { isRunnerless, wasLetRun } from '../settings/runnerless.ts';
import { awaiting } from '../status/approval-status.ts';
import { ended, lostAttempt, queued } from '../status/turn-status.ts';
import { wasNeverSent } from '../world/link-view.ts';
import { type PodEnd, podEnd } from '../world/pod-end.ts';
import { startedContainer } from '../world/pod-status.ts';
import type { CachedTurn } from '../world/world.ts';
import type { Draft } from './draft.ts';

/** What becomes of a turn whose pod is lost. */

/** Why its pod ended, as far as anybody has said so: the pod itself, as it is or was last seen, or we who deleted it. */
export function causeOf(draft: Draft, podUID: string | undefined): PodEnd {
  const { settings, world } = draft;
  const { deletionPending } = world.memory;
  return podEnd(podLastSeen(draft, podUID), {
    memoryLimit: isProblem(settings) ? undefined : settings.resources.limits.memory,
    deletedBecause:
      deletionPending !== undefined && deletionPending.podUID === podUID ? deletionPending.why : undefined,
  });
}

function podLastSeen({ world: { pod, memory } }: Draft, uid: string | undefined): StoredPod | undefined {
  return [pod, memory.lastPod].find((seen) => seen?.metadata.uid === uid);
}

/** Queued again if no runner ever saw it; begun again if it may be; else lost, and told why. */
export function afterLoss(draft: Draft, turn: CachedTurn): TurnStatus {
  const { link, now } = draft.world;
  const { podUID } = turn.status;
  const pod = podLastSeen(draft, podUID);
  // What the cache shows of a pod proves nothing: a runner answers over attach, perhaps to an earlier leader, long before.
  const neverRan =
    isRunnerless(draft) && pod?.status?.phase === 'Pending' && !startedContainer(pod) && !wasLetRun(draft, podUID);
  if (neverRan || wasNeverSent(link, podUID, turn.metadata.uid)) {
    const { approval } = turn.status;
    if (approval) return awaiting(turn, approval, {}, now);
    return queued(turn, turn.status.index ?? draft.turns.lastIndex, 'Queued', now);
  }
  const cause = causeOf(draft, podUID);
  const message = lossMessage(draft, cause);
  if (mayTryAgain(turn, cause)) return lostAttempt(turn, { reason: cause.reason, message }, now);
  return ended(turn, { phase: 'Failed', reason: cause.reason, message }, now);
}

/** What a person is told of a turn that was lost. */
export function lossMessage(draft: Draft, cause: PodEnd): string {
  const advice =
    cause.reason === 'OOMKilled'
      ? 'raise resources.limits.memory, or give the agent less to do'
      : cause.fromOutside
        ? 'give the turn again, or let spec.retry do it, if it may run twice'
        : 'raise resources.limits, or let the agent store less';
  const pod = draft.world.session.status?.podName ?? 'of the turn';
  return `Pod ${pod} ${cause.message} while the turn ran. What the turn did is unknown: ${advice}. The session goes on from its last stored state.`;
}

/** An agent that was too much for its pod would be so again, and what the user has called off stays off. */
export function mayTryAgain(turn: CachedTurn, cause: PodEnd): boolean {
  return cause.fromOutside && !turn.spec.cancel && (turn.status.attempt ?? 1) < (turn.spec.retry?.maxAttempts ?? 1);
}
