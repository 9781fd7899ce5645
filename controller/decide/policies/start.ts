import { type Draft, type Policy, wake } from '../draft.ts';
import { isProblem } from '../effective.ts';
import { isFinished, suspendRequest } from '../hold.ts';
import { isOver } from '../pod-status.ts';
import { stateIsWritten } from '../session-status.ts';
import { running } from '../turn-status.ts';
import { failLive, knownPodUID } from './pod.ts';
import { timeoutOf } from './running.ts';

const START_BACKOFF_MS = 500;

/** From a wish to run to a running turn: a place, a pod, a link, a binding, the turn. */

/** Takes the next incarnation when something needs a pod and there is a place; otherwise the session waits. */
export const admit: Policy = (draft) => {
  const { session, place } = draft.world;
  if (session.status?.podName || !needsPod(draft)) return undefined;
  const again = nextStart(draft);
  if (draft.world.now < again) {
    wake(draft, again);
    return undefined;
  }
  if (place === 'Available') {
    draft.actions.push({ do: 'OwnIncarnation' });
    return 'Stop';
  }
  draft.waiting = true;
  if (typeof place === 'object') draft.problem = { reason: place.waiting, message: place.message };
  return undefined;
};

/** After a container that ended before it was bound the next is not tried at once. */
function nextStart({ world: { memory } }: Draft): number {
  const { failedStarts } = memory;
  return failedStarts ? failedStarts.at + START_BACKOFF_MS * 2 ** failedStarts.count : 0;
}

/** A new session gets its pod at once; a suspended one only for a turn that is not held. */
function needsPod(draft: Draft): boolean {
  const { session } = draft.world;
  if (session.spec.suspend || isFinished(draft) || isProblem(draft.settings)) return false;
  if (draft.turns.live.length > 0) return true;
  const request = suspendRequest(draft);
  return (session.status?.incarnation ?? 0) === 0 && request !== 'Active' && request !== 'Unseen';
}

/** The incarnation is owned: its pod is created, unless it is known to have existed. */
export const create: Policy = (draft) => {
  const { session, pod, memory } = draft.world;
  if (!session.status?.podName || pod || knownPodUID(draft)) return undefined;
  if (isProblem(draft.settings)) {
    draft.problem = draft.settings;
    // Owned, but nothing was created and nothing can be: let go of the place.
    draft.released = true;
    return 'Stop';
  }
  draft.problem = memory.startProblem;
  if (memory.startProblem?.reason === 'PodForbidden') {
    // It would be refused again and again: the turns that wait for it end, and the place is free.
    failLive(draft, 'PodForbidden', memory.startProblem.message);
    draft.released = true;
    return 'Stop';
  }
  if (memory.startProblem?.reason === 'QuotaExceeded' && session.spec.suspend) {
    draft.released = true;
    return 'Stop';
  }
  draft.actions.push({ do: 'CreatePod', settings: draft.settings });
  return 'Stop';
};

/** A living pod has a link. */
export const connect: Policy = (draft) => {
  const { pod, link } = draft.world;
  if (!pod || isOver(pod)) return undefined;
  if (link?.podUID !== pod.metadata.uid) draft.actions.push({ do: 'OpenLink', pod });
  return undefined;
};

/** An unbound runner is bound, once the status has the last committed state. */
export const bind: Policy = (draft) => {
  const { pod, link, memory } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || link?.phase !== 'Unbound') return undefined;
  if (!stateIsWritten(draft)) return undefined;
  if (memory.startProblem) draft.problem = memory.startProblem;
  if (!isProblem(draft.settings)) draft.actions.push({ do: 'Bind', settings: draft.settings });
  return undefined;
};

/** The first turn in order is written `Running` with the pod's uid, then given to the runner. */
export const dispatch: Policy = (draft) => {
  const { pod, link, session, now } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || isOver(pod) || isFinished(draft)) return undefined;
  const turn = draft.turns.running ?? draft.turns.live[0];
  // A cancelled turn, or one that a policy has just ended, does not start.
  if (!turn || draft.actions.some((action) => action.do === 'WriteTurn' && action.turn === turn)) return undefined;
  const podUID = pod.metadata.uid;
  if (turn.status.phase !== 'Running') {
    if (session.spec.suspend) return undefined;
    const index = turn.status.index ?? draft.turns.lastIndex + 1;
    const incarnation = session.status?.incarnation ?? 0;
    draft.actions.push({ do: 'WriteTurn', turn, status: running(turn, { index, incarnation, podUID }, now) });
  } else if (turn.status.podUID !== podUID || turn.spec.cancel) {
    return undefined;
  }
  const bound = link?.phase === 'Bound' || link?.phase === 'Binding' || draft.actions.some((a) => a.do === 'Bind');
  if (bound && link?.podUID === podUID && link.active !== turn.metadata.uid) {
    draft.actions.push({ do: 'StartTurn', turn, timeoutMs: timeoutOf(draft, turn.spec.timeout) });
  }
  return undefined;
};
