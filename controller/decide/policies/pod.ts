import type { Draft, Policy } from '../draft.ts';
import { wake } from '../draft.ts';
import { DEFAULT_START_MS, isProblem } from '../effective.ts';
import { isOver, podProblem, startedContainer } from '../pod-status.ts';
import { ended, queued } from '../turn-status.ts';

/** The pod of the present incarnation: lost, ended, slow to start, silent. */

/** Pods of earlier incarnations that are still there. */
export const strays: Policy = (draft) => {
  for (const pod of draft.world.strays) {
    if (!pod.metadata.deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: 'earlier incarnation' });
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
  const { world } = draft;
  const { session, memory, now } = world;
  const known = knownPodUID(draft);
  if (!session.status?.podName || !known) return undefined;
  if (world.pod && world.pod.metadata.uid === known) return undefined;
  if (memory.confirmedGone?.podUID !== known) {
    draft.actions.push({ do: 'ConfirmGone', podUID: known });
    return 'Stop';
  }
  const { running } = draft.turns;
  if (running) {
    draft.actions.push({ do: 'WriteTurn', turn: running, status: afterLoss(draft, now) });
  }
  draft.actions.push({ do: 'CloseLink' });
  draft.released = true;
  return 'Stop';
};

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
  const failedStart = startFailure(draft);
  if (failedStart) {
    draft.problem = { reason: 'StartFailed', message: failedStart };
    failLive(draft, failedStart);
  } else if (ours) {
    draft.actions.push({ do: 'WriteTurn', turn: ours, status: afterLoss(draft, now) });
  }
  draft.actions.push({ do: 'CloseLink' });
  if (!pod.metadata.deletionTimestamp) draft.actions.push({ do: 'DeletePod', pod, why: 'its container ended' });
  return 'Stop';
};

/** What a turn becomes whose pod is lost: queued again if the pod never saw it, else lost. */
function afterLoss(draft: Draft, now: number) {
  const { link, pod } = draft.world;
  const turn = draft.turns.running;
  if (!turn) throw new Error('no turn is running');
  const sameLink = link !== undefined && link.podUID === turn.status.podUID;
  const sent = sameLink && link.sent.has(turn.metadata.uid);
  const unseen = !sent && ((sameLink && !link.resumed) || (pod?.status?.phase === 'Pending' && !startedContainer(pod)));
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

/** A container that ended by itself before it was ever bound cannot work; one that was killed from outside can. */
function startFailure(draft: Draft): string | undefined {
  const { pod, link } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || pod.status?.reason) return undefined;
  if (boundBefore(draft) || link?.bound || (link?.sent.size ?? 0) > 0) return undefined;
  const terminated = pod.status?.containerStatuses?.[0]?.state?.terminated;
  if (!terminated || terminated.exitCode === 137 || terminated.exitCode === 143) return undefined;
  const words = [terminated.reason, terminated.message].filter(Boolean).join(': ');
  return `The container ended with exit code ${terminated.exitCode} before it took a turn${words ? ` (${words})` : ''}; is the runner in the image?`;
}

function failLive(draft: Draft, message: string): void {
  for (const turn of draft.turns.live) {
    draft.actions.push({
      do: 'WriteTurn',
      turn,
      status: {
        ...ended(turn, { phase: 'Failed', reason: 'StartFailed', message }, draft.world.now),
        index:
          turn.status.index ??
          draft.turns.lastIndex + 1 + draft.turns.live.filter((t) => !t.status.index).indexOf(turn),
      },
    });
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
  failLive(draft, message);
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
    failLive(draft, message);
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'state not restored' });
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
