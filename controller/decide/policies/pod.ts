import type { StoredPod } from '../../../core/kube/builtin.ts';
import { LABEL_INCARNATION } from '../../../core/resources/names.ts';
import { wasNeverSent } from '../../link/view.ts';
import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { DEFAULT_START_MS, isProblem } from '../effective.ts';
import { isOver, podProblem, startedContainer } from '../pod-status.ts';
import { ended, queued } from '../turn-status.ts';

/** How often a container may be killed before it is bound. */
const MAX_FAILED_STARTS = 3;

/** The pod of the present incarnation: lost, ended, slow to start, silent. */

/**
 * Pods of earlier incarnations that are still there, also of the present one when the status has let go of it. A pod of a
 * later incarnation means that the cache of sessions is behind.
 */
export const strays: Policy = (draft) => {
  const { incarnation = 0, podName } = draft.world.session.status ?? {};
  for (const pod of draft.world.strays) {
    const ofPod = Number(pod.metadata.labels?.[LABEL_INCARNATION] ?? 0);
    const earlier = ofPod < incarnation || (ofPod === incarnation && !podName);
    if (earlier && !pod.metadata.deletionTimestamp)
      draft.actions.push({ do: 'DeletePod', pod, why: 'earlier incarnation' });
  }
  return undefined;
};

/** The uid of the pod that the present incarnation is known to have had. */
export function knownPodUID(draft: Draft): string | undefined {
  const { session, turns } = draft.world;
  const incarnation = session.status?.incarnation;
  return (
    session.status?.podUID ??
    turns.find((turn) => turn.status.incarnation === incarnation && turn.status.podUID)?.status.podUID
  );
}

/** A pod that was there and is not: what ran in it is lost, once live reads have confirmed it. */
export const gone: Policy = (draft) => {
  const { world, turns } = draft;
  const { pod, memory, now } = world;
  const lost = lostPodUID(draft);
  if (!lost) return undefined;
  if (memory.confirmedGone?.podUID !== lost) {
    draft.actions.push({ do: 'ConfirmGone', podUID: lost });
    return 'Stop';
  }
  const turn = turns.running?.status.podUID === lost ? turns.running : undefined;
  if (turn) draft.actions.push({ do: 'WriteTurn', turn, status: afterLoss(draft, now) });
  if (!pod) {
    draft.actions.push({ do: 'CloseLink' });
    draft.released = true;
  }
  return 'Stop';
};

/** The pod of the running turn, or else of the incarnation, where it is not the one that is there. */
function lostPodUID(draft: Draft): string | undefined {
  const { session, pod } = draft.world;
  const ran = draft.turns.running?.status.podUID;
  if (ran && ran !== pod?.metadata.uid) return ran;
  const known = session.status?.podName ? knownPodUID(draft) : undefined;
  return known !== pod?.metadata.uid ? known : undefined;
}

/**
 * The container has ended. What it printed last may not have come over the attach: its log has it. Then the pod goes.
 * A container that ended before it was bound never was a session: see `startFailed`.
 */
export const over: Policy = (draft) => {
  const { pod, link, memory, now } = draft.world;
  if (!pod || !isOver(pod)) return undefined;
  const { running } = draft.turns;
  const ours = running?.status.podUID === pod.metadata.uid ? running : undefined;
  if (ours && link?.delivery?.result.message.turn === ours.metadata.uid) return undefined;
  if (ours && memory.logRead?.podUID !== pod.metadata.uid) {
    draft.actions.push({ do: 'ReadLog', pod });
    return 'Stop';
  }
  const unbound = !wasBound(draft) && !pod.metadata.deletionTimestamp;
  if (unbound && (endedByItself(pod) || (memory.failedStarts?.count ?? 0) >= MAX_FAILED_STARTS)) {
    const message = startFailure(pod);
    draft.problem = { reason: 'StartFailed', message };
    failLive(draft, 'StartFailed', message);
  } else if (ours) {
    draft.actions.push({ do: 'WriteTurn', turn: ours, status: afterLoss(draft, now) });
  }
  if (pod.metadata.deletionTimestamp) return 'Stop';
  if (unbound) draft.actions.push({ do: 'NoteFailedStart' });
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its container ended' });
  return 'Stop';
};

/** What a turn becomes whose pod is lost: queued again if the pod never saw it, else lost. */
function afterLoss(draft: Draft, now: number) {
  const { link, pod } = draft.world;
  const turn = draft.turns.running;
  if (!turn) throw new Error('no turn is running');
  const sent = link?.podUID === turn.status.podUID && link?.sent.has(turn.metadata.uid);
  const neverStarted = pod?.status?.phase === 'Pending' && !startedContainer(pod) && !sent;
  const unseen = neverStarted || wasNeverSent(link, turn.status.podUID, turn.metadata.uid);
  if (unseen) return queued(turn, turn.status.index ?? draft.turns.lastIndex, 'Queued', now);
  const why = pod?.status?.reason ?? pod?.status?.containerStatuses?.[0]?.state?.terminated?.reason;
  return ended(
    turn,
    {
      phase: 'Failed',
      reason: 'PodLost',
      message: `Pod ${draft.world.session.status?.podName} went away while the turn ran${why ? ` (${why})` : ''}; what the turn did is unknown. Give the turn again if it may run twice; the session goes on from its last stored state.`,
    },
    now,
  );
}

/** Whether the status says that this pod has been bound once, perhaps by an earlier leader. */
function boundBefore({ world: { session, pod, link } }: Draft): boolean {
  if (link?.resumed) return true;
  const ready = session.status?.conditions?.find((condition) => condition.type === 'Ready');
  const was = ready?.status === 'True' || ready?.reason === 'Suspending';
  return was && session.status?.podUID === pod?.metadata.uid;
}

function wasBound(draft: Draft): boolean {
  const { link } = draft.world;
  return boundBefore(draft) || link?.bound !== undefined || (link?.sent.size ?? 0) > 0;
}

/** A container that ended by itself before it was bound cannot work; one that was killed from outside may. */
function endedByItself(pod: StoredPod): boolean {
  const terminated = pod.status?.containerStatuses?.[0]?.state?.terminated;
  return !pod.status?.reason && terminated !== undefined && terminated.exitCode !== 137 && terminated.exitCode !== 143;
}

function startFailure(pod: StoredPod): string {
  const terminated = pod.status?.containerStatuses?.[0]?.state?.terminated;
  const words = [pod.status?.reason, pod.status?.message, terminated?.reason, terminated?.message].filter(Boolean);
  const code = terminated ? ` with exit code ${terminated.exitCode}` : '';
  const why = words.length > 0 ? ` (${words.join(': ')})` : '';
  return `The container ended${code} before it took a turn${why}; is the runner in the image, and has it enough memory?`;
}

/** Ends every waiting turn, each with an index. */
export function failLive(draft: Draft, reason: 'StartFailed' | 'PodForbidden', message: string): void {
  let last = draft.turns.lastIndex;
  for (const turn of draft.turns.live) {
    const status = ended(turn, { phase: 'Failed', reason, message }, draft.world.now);
    draft.actions.push({ do: 'WriteTurn', turn, status: { ...status, index: turn.status.index ?? ++last } });
  }
}

/** A pod that is not bound within `timeouts.start` is given up, and the turns that waited for it fail. */
export const slowStart: Policy = (draft) => {
  const { pod, link, now, memory } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || link?.phase === 'Bound' || boundBefore(draft)) return undefined;
  draft.problem = podProblem(pod) ?? memory.startProblem;
  const startMs = isProblem(draft.settings) ? DEFAULT_START_MS : draft.settings.startMs;
  const deadline = Date.parse(pod.metadata.creationTimestamp) + startMs;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  const cause = draft.problem?.message ?? 'its runner did not answer';
  const message = `The pod did not take turns within timeouts.start (${Math.round(startMs / 1000)} s): ${cause}`;
  draft.problem = { reason: 'StartFailed', message };
  failLive(draft, 'StartFailed', message);
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'timeouts.start' });
  return 'Stop';
};

/** A runner that owes an answer for too long, or that belongs to somebody else, is of no use. */
export const silent: Policy = (draft) => {
  const { pod, link, now, installation } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || !link) return undefined;
  if (link.phase === 'Foreign') {
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'bound to another incarnation' });
    return 'Stop';
  }
  if (link.refused?.code === 'RestoreFailed') {
    const message = `The stored state could not be restored: ${link.refused.message}`;
    draft.problem = { reason: 'StartFailed', message };
    failLive(draft, 'StartFailed', message);
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'state not restored' });
    return 'Stop';
  }
  if (draft.world.memory.unstored?.podUID === pod.metadata.uid && !draft.turns.running) {
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its state was not stored' });
    return 'Stop';
  }
  if (link.silentSince === undefined || (link.phase === 'Opening' && !boundBefore(draft))) return undefined;
  const deadline = link.silentSince + installation.unresponsiveMs;
  if (now < deadline) {
    wake(draft, deadline);
    return undefined;
  }
  draft.actions.push({ do: 'DeletePod', pod, why: 'its runner does not answer' });
  return 'Stop';
};
