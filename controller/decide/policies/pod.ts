import type { RefusalCode } from '../../../core/frames/messages.ts';
import { LABEL_INCARNATION } from '../../../core/resources/names.ts';
import type { Reason } from '../../../core/resources/reasons.ts';
import { waitingProcess } from '../../observed/approvals.ts';
import { silencePatience } from '../../observed/link-view.ts';
import { isOwn } from '../../observed/own-turns.ts';
import { isOver } from '../../observed/pod-status.ts';
import type { CachedTurn } from '../../observed/world.ts';
import type { Draft, Policy } from '../draft.ts';
import { hasPassed } from '../draft.ts';
import { afterLoss } from '../loss.ts';
import { recordStartFailure } from '../start-failures.ts';
import { boundBefore, failedStart, failLive, freeIndex, hadBeenBound, startMs } from './starting.ts';

/** The pod of the present incarnation: lost, ended or silent. */

/**
 * Deletes pods of earlier incarnations, of the present one when the status has released it, and a pod that has the
 * present one's name but is another. A pod of a later incarnation means that the cache of sessions is behind.
 */
export const otherPods: Policy = (draft) => {
  const { incarnation = 0, podName } = draft.world.session.status ?? {};
  for (const pod of draft.world.otherPods) {
    const ofPod = Number(pod.metadata.labels?.[LABEL_INCARNATION] ?? 0);
    const earlier = ofPod < incarnation || (ofPod === incarnation && (!podName || podName === pod.metadata.name));
    if (earlier && !pod.metadata.deletionTimestamp)
      draft.actions.push({ do: 'DeletePod', pod, why: 'earlier incarnation' });
  }
  return undefined;
};

/**
 * UID of the pod that the present incarnation is known to have had: by the status, by its turns, or as last observed.
 */
export function knownPodUID(draft: Draft): string | undefined {
  const { session, turns, memory } = draft.world;
  const { incarnation, podName, podUID } = session.status ?? {};
  const ran = ({ status }: CachedTurn) => status.incarnation === incarnation && status.podUID !== undefined;
  const seen =
    memory.incarnation.lastPod?.metadata.name === podName ? memory.incarnation.lastPod?.metadata.uid : undefined;
  return podUID ?? turns.find((turn) => ran(turn) && isOwn(session, turn))?.status.podUID ?? seen;
}

/** Handles a pod that existed and is gone: its turn is lost, once live reads have confirmed that. */
export const gone: Policy = (draft) => {
  const { world, turns } = draft;
  const { pod, memory } = world;
  const lost = lostPodUID(draft);
  if (!lost) return undefined;
  if (memory.incarnation.confirmedGone?.podUID !== lost) {
    draft.actions.push({ do: 'ConfirmGone', podUID: lost });
    return 'Stop';
  }
  const turn = turns.running?.status.podUID === lost ? turns.running : undefined;
  if (turn) draft.actions.push({ do: 'WriteTurn', turn, status: afterLoss(draft, turn) });
  if (!pod) {
    if (!hadBeenBound(draft, lost)) recordStartFailure(draft, lost);
    draft.actions.push({ do: 'CloseLink' });
    draft.released = true;
  }
  return 'Stop';
};

/** UID of the pod of the running turn, or else of the incarnation, if it is not the present pod. */
function lostPodUID(draft: Draft): string | undefined {
  const { session, pod } = draft.world;
  const ran = draft.turns.running?.status.podUID;
  if (ran && ran !== pod?.metadata.uid) return ran;
  const known = session.status?.podName ? knownPodUID(draft) : undefined;
  return known !== pod?.metadata.uid ? known : undefined;
}

/**
 * Handles an ended container. Its last frames may not have come over the attach, so its log is read; then the pod is
 * deleted. A container that ended before it was bound is a failed start: see `failedStart`.
 */
export const over: Policy = (draft) => {
  const { pod, link, memory } = draft.world;
  if (!pod || !isOver(pod)) return undefined;
  const { running } = draft.turns;
  const waiting = waitingProcess(draft);
  const ours = running?.status.podUID === pod.metadata.uid ? running : waiting;
  if (ours && link?.delivery?.result.message.turn === ours.metadata.uid) return undefined;
  if (ours && memory.incarnation.logRead?.podUID !== pod.metadata.uid) {
    draft.actions.push({ do: 'ReadLog', pod });
    return 'Stop';
  }
  if (!hadBeenBound(draft, pod.metadata.uid) && !pod.metadata.deletionTimestamp) return failedStart(draft, pod);
  // A turn that waits for a decision goes on waiting.
  if (ours && ours !== waiting) draft.actions.push({ do: 'WriteTurn', turn: ours, status: afterLoss(draft, ours) });
  if (pod.metadata.deletionTimestamp) return 'Stop';
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its container ended' });
  return 'Stop';
};

/**
 * Gives up a pod whose runner cannot be given the files or the environment that the status records: the next incarnation
 * takes what is there by then. Its turn, which the runner never got, is queued again once the pod is gone.
 */
export const lostContents: Policy = (draft) => {
  const { pod, memory } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || memory.incarnation.contentsLost?.podUID !== pod.metadata.uid)
    return undefined;
  draft.problems.Pod = memory.incarnation.contentsLost.problem;
  draft.actions.push({ do: 'DeletePod', pod, why: 'what it was to be given is gone' });
  return 'Stop';
};

/** Refusals of a runner that cannot start its session: the message for people, and why the pod is deleted. */
const STARTS_NOT: Readonly<Partial<Record<RefusalCode, { reason: Reason; what: string; why: string }>>> = {
  RestoreFailed: {
    reason: 'StartFailed',
    what: 'The stored state could not be restored',
    why: 'state not restored',
  },
  FilesFailed: {
    reason: 'StartFailed',
    what: "The agent's files could not be unpacked",
    why: 'agent files not unpacked',
  },
  EnvironmentFailed: {
    reason: 'StartFailed',
    what: 'The environment could not be unpacked',
    why: 'environment not unpacked',
  },
  EnvironmentMismatch: {
    reason: 'EnvironmentMismatch',
    what: 'The environment could not be unpacked',
    why: 'environment not unpacked',
  },
};

/** Deletes a pod whose runner owes an answer for too long, or belongs to another incarnation. */
export const silent: Policy = (draft) => {
  const { pod, link, installation } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || !link) return undefined;
  if (link.phase === 'Foreign') {
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'bound to another incarnation' });
    return 'Stop';
  }
  const failed = link.refused && STARTS_NOT[link.refused.code];
  if (failed) {
    const { reason, what, why } = failed;
    const message = `${what}: ${link.refused?.message}`;
    draft.problems.Pod = { reason, message };
    const index = freeIndex(draft);
    if (index === undefined) return 'Stop';
    failLive(draft, index, { reason, message });
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why });
    return 'Stop';
  }
  // A pod that has never answered is still starting: `timeouts.start` applies.
  if (link.phase === 'Opening' && !boundBefore(draft, pod.metadata.uid)) return undefined;
  // Attaches fail only to this pod: its node may be well, but the kubelet or the way to it is not. If no pod answers,
  // the way there is broken, and another pod would be no easier to reach.
  const patience = link.othersAnswer ? installation.nodeGraceMs : Math.max(installation.nodeGraceMs, startMs(draft));
  if ((link.unreachableMs ?? 0) >= patience) {
    draft.actions.push({ do: 'DeletePod', pod, why: 'it could not be attached' });
    return 'Stop';
  }
  if (link.silentSince === undefined || !hasPassed(draft, link.silentSince, silencePatience(link, installation)))
    return undefined;
  draft.actions.push({ do: 'DeletePod', pod, why: 'its runner does not answer' });
  return 'Stop';
};
