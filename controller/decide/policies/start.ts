import { understand } from '../../../core/frames/messages.ts';
import type { StoredPod } from '../../../core/kube/builtin.ts';
import { CONTAINER, INJECTOR_CONTAINER } from '../../../core/resources/names.ts';
import { isGiven } from '../../observed/own-turns.ts';
import { isOver } from '../../observed/pod-status.ts';
import { isFromPool } from '../../observed/session-pods.ts';
import type { CachedTurn } from '../../observed/world.ts';
import { isProblem } from '../../settings/effective.ts';
import { grant, grantKept } from '../../settings/granted.ts';
import { isRunnerless } from '../../settings/runnerless.ts';
import { ended, nextAttemptAt, running } from '../../status/turn-status.ts';
import { nextIncarnation } from '../admission.ts';
import { stateIsWritten } from '../committed-state.ts';
import { type Draft, type Policy, waitedSince, wake } from '../draft.ts';
import { groupWait } from '../group.ts';
import { waitMessage } from '../queue-status.ts';
import { awaitsRoom, roomWait } from '../room.ts';
import { nextStart, wanted } from '../start-failures.ts';
import { isFinished } from '../suspend-reason.ts';
import { knownPodUID } from './pod.ts';
import { failLive, freeIndex, startMs } from './starting.ts';

/** Maximum wait for a transient refusal: the session holds a slot that others could use. */
const TRANSIENT_MS = 60_000;

/** Start of a session: a slot, a pod, a link, a binding, the turn. */

/** Takes the next incarnation when the session needs a pod and there is a slot; otherwise the session waits. */
export const admit: Policy = (draft) => {
  const { session, slot } = draft.world;
  if (session.status?.podName || !wanted(draft)) return undefined;
  const again = nextStart(draft);
  if (draft.world.now < again) {
    wake(draft, again);
    return undefined;
  }
  const limited = groupWait(draft);
  const unknown = typeof slot === 'object' && slot.waiting === 'CapacityUnknown';
  if (limited && !unknown) {
    // The session could not use a slot yet; others can.
    draft.problems.Slot = limited;
    return undefined;
  }
  if (!unknown && awaitsRoom(draft)) {
    draft.problems.Slot = roomWait(draft);
    return undefined;
  }
  if (slot === 'Available') {
    draft.admission = nextIncarnation(draft.world);
    return 'Stop';
  }
  draft.waiting = true;
  if (typeof slot === 'object') draft.problems.Slot = { reason: slot.waiting, message: waitMessage(draft, slot) };
  return undefined;
};

/** Creates the pod of the owned incarnation, unless it is known to have existed. */
export const create: Policy = (draft) => {
  const { session, pod, memory, now } = draft.world;
  if (!session.status?.podName || pod || knownPodUID(draft)) return undefined;
  if (isProblem(draft.settings)) {
    draft.problems.Creation = draft.settings;
    // The incarnation is owned but can have no pod: its slot is released.
    draft.released = true;
    return 'Stop';
  }
  const problem = memory.incarnation.startProblem;
  draft.problems.Creation = problem;
  if (problem?.reason === 'QuotaExceeded') {
    // The session waits for quota without a slot, which others can use.
    draft.startFailed = problem;
    draft.released = true;
    return 'Stop';
  }
  // The API server would refuse it again: the waiting turns end, and the slot is released.
  const since = memory.incarnation.createFailingSince;
  const patienceMs = problem?.passes ? Math.min(TRANSIENT_MS, startMs(draft)) : startMs(draft);
  if (
    problem &&
    (problem.reason === 'PodForbidden' || (since !== undefined && now - waitedSince(draft, since) >= patienceMs))
  ) {
    const index = freeIndex(draft);
    if (index === undefined) return 'Stop';
    failLive(draft, index, problem);
    draft.released = true;
    return 'Stop';
  }
  const [turn] = draft.settings.runner === 'None' ? draft.turns.live : [];
  if (draft.settings.runner === 'None' && !turn) {
    // The pod's turn has ended since.
    draft.released = true;
    return 'Stop';
  }
  // The leader before may still release the slot of this session and give it to another.
  if (draft.world.leaderIsReady)
    draft.actions.push({ do: 'CreatePod', settings: draft.settings, ...(turn ? { turn } : {}) });
  return 'Stop';
};

/** Opens a link to a living pod. */
export const connect: Policy = (draft) => {
  const { pod, link } = draft.world;
  if (!pod || isOver(pod)) return undefined;
  if (link?.podUID !== pod.metadata.uid) draft.actions.push({ do: 'OpenLink', pod });
  return undefined;
};

/** Binds an unbound runner, once the status has the last committed state and no earlier leader can move it. */
export const bind: Policy = (draft) => {
  const { pod, link, memory, leaderIsReady } = draft.world;
  if (!leaderIsReady) return undefined;
  if (!pod || pod.metadata.deletionTimestamp || link?.phase !== 'Unbound') return undefined;
  if (isOfOtherRelease(draft, pod)) {
    draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its runner is of another release' });
    return 'Stop';
  }
  if (!stateIsWritten(draft)) return undefined;
  draft.problems.Binding = memory.incarnation.startProblem;
  if (!isProblem(draft.settings)) draft.actions.push({ do: 'Bind', settings: draft.settings });
  return undefined;
};

/**
 * Reports whether the unbound runner is not understood and the next pod would get another one: the pod was made before an
 * upgrade. The second such pod in a row is kept for a while, because its image may be changed on its way.
 */
function isOfOtherRelease({ world: { session, link, installation }, settings }: Draft, pod: StoredPod): boolean {
  if (link?.protocol === undefined || understand(link.protocol, installation.protocol) || isProblem(settings))
    return false;
  const { containers, initContainers = [] } = pod.spec;
  const imageOf = (name: string) => [...containers, ...initContainers].find((one) => one.name === name)?.image;
  const isOther =
    settings.runner === 'Injected'
      ? imageOf(INJECTOR_CONTAINER) !== settings.runnerImage
      : imageOf(CONTAINER) !== settings.image;
  return isOther && !session.status?.startFailures;
}

/** Interval between repeats of the state to a runner that refuses turns until it is complete. */
const RESTORE_AGAIN_MS = 5_000;

/** Sends a state again that was cut off: the attach or its sender can break in the middle of it. */
export const restore: Policy = (draft) => {
  const { pod, link, memory, now } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp || link?.phase !== 'Bound' || link.refused?.code !== 'NotRestored') {
    return undefined;
  }
  draft.problems.Binding = memory.incarnation.startProblem;
  const again = (link.bindSentAt ?? Number.NEGATIVE_INFINITY) + RESTORE_AGAIN_MS;
  if (now < again) wake(draft, again);
  else if (!isProblem(draft.settings)) draft.actions.push({ do: 'Bind', settings: draft.settings });
  return undefined;
};

/**
 * Writes the first turn in order Running with the pod's uid beside the binding of its runner, then gives it. A runnerless
 * pod gets the turn with the write: its gate keeps it from starting before.
 */
export const dispatch: Policy = (draft) => {
  const { pod, link, session, now, leaderIsReady } = draft.world;
  if (!leaderIsReady) return undefined;
  if (!pod || pod.metadata.deletionTimestamp || isOver(pod) || isFinished(draft)) return undefined;
  const turn = draft.turns.running ?? draft.turns.live[0];
  // A cancelled turn, or one that a policy has just ended, does not start.
  if (!turn || draft.actions.some((action) => action.do === 'WriteTurn' && action.turn === turn)) return undefined;
  const podUID = pod.metadata.uid;
  const changed = turn.status.inputDigest !== undefined && turn.status.inputDigest !== turn.input.digest;
  if (now < nextAttemptAt(turn)) {
    wake(draft, nextAttemptAt(turn));
    return undefined;
  }
  if (turn.status.phase === 'AwaitingApproval') return undefined;
  if (!isGiven(turn)) {
    if (session.spec.suspend || groupWait(draft) || awaitsRoom(draft)) return undefined;
    if (!isRunnerless(draft) && !isBound(draft, podUID)) return undefined;
    if (changed) return endChanged(draft, turn);
    const index = turn.status.index ?? draft.turns.lastIndex + 1;
    const incarnation = session.status?.incarnation ?? 0;
    const granted = grantKept(turn) ?? grant(turn, draft.world);
    const group = session.spec.concurrencyGroup;
    const facts = { index, incarnation, podUID, granted, ...(group ? { concurrencyGroup: group.name } : {}) };
    draft.actions.push({ do: 'WriteTurn', turn, status: running(turn, facts, now) });
  } else if (turn.status.podUID !== podUID || turn.spec.cancel) {
    return undefined;
  }
  const decided = turn.status.approval?.decided ? turn.status.approval.id : undefined;
  if (link && takesTurns(draft, podUID) && (link.active !== turn.metadata.uid || link.lastDecided !== decided)) {
    if (changed) return endChanged(draft, turn);
    draft.actions.push({ do: 'StartTurn', turn });
  }
  return undefined;
};

/** Reports whether the pod's runner is bound, or is bound by this decision as far as can be known. */
function isBound({ world: { link }, actions, problems }: Draft, podUID: string): boolean {
  if (link?.podUID !== podUID) return false;
  if (link.phase === 'Bound' || link.phase === 'Binding') return true;
  return !problems.Binding && actions.some((action) => action.do === 'Bind');
}

/**
 * Reports whether the runner can be given a turn. A claimed pod may be dead although its attach looks open: its runner has
 * answered first, so that a turn is known not to have been begun where it has not.
 */
export function takesTurns(draft: Draft, podUID: string): boolean {
  const { link, pod } = draft.world;
  return isFromPool(pod?.metadata.name) ? link?.podUID === podUID && link.phase === 'Bound' : isBound(draft, podUID);
}

/**
 * Ends a turn whose input has changed. A runner that already has the turn continues with the former input, which cannot be
 * sent again.
 */
function endChanged(draft: Draft, turn: CachedTurn): undefined {
  const message = 'spec.input is not what the turn was begun with, and that is not known any more; create a new Turn.';
  const status = ended(turn, { phase: 'Failed', reason: 'InputChanged', message }, draft.world.now);
  draft.actions.push({ do: 'WriteTurn', turn, status });
}
