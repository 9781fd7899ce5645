import type { StoredPod } from '../../../core/kube/builtin.ts';
import { BUILDER, INJECTOR_CONTAINER } from '../../../core/resources/names.ts';
import { podSaidBound } from '../../observed/bound-pod.ts';
import { UNRESPONSIVE_MS, wasNeverSent } from '../../observed/link-view.ts';
import { isGiven } from '../../observed/own-turns.ts';
import { couldNotStart, isHopeless, ownContainer, podProblem, startedContainer } from '../../observed/pod-status.ts';
import { isFromPool } from '../../observed/session-pods.ts';
import type { CachedTurn, Problem } from '../../observed/world.ts';
import { startLimit } from '../../settings/granted.ts';
import { isRunnerless, wasLetRun } from '../../settings/runnerless.ts';
import { ended } from '../../status/turn-status.ts';
import type { Draft, Policy } from '../draft.ts';
import { waitedSince, wake } from '../draft.ts';
import { afterLoss, causeOf } from '../loss.ts';
import { recordStartFailure, withFailedStart } from '../start-failures.ts';
import { isFinished } from '../suspend-reason.ts';

/** Pods that cannot take turns yet: waits, retries, giving up. */

/** Maximum consecutive failed starts by the pod's own fault; minimum of those by other causes before it is given up. */
const MAX_FAILED_STARTS = 3;

/** Reports whether this pod is known to have been bound, perhaps by an earlier leader. */
export function boundBefore({ world: { session, link } }: Draft, podUID: string): boolean {
  if (link?.podUID === podUID && link.resumed) return true;
  return podSaidBound(session) === podUID;
}

export function wasBound(draft: Draft, podUID: string): boolean {
  const { link } = draft.world;
  if (isRunnerless(draft)) return wasLetRun(draft, podUID);
  if (boundBefore(draft, podUID)) return true;
  return link?.podUID === podUID && (link.bound !== undefined || link.sent.size > 0);
}

/** Reports the same of a pod that has ended or is gone: its link may be closed, and the status no longer shows it ready. */
export function hadBeenBound(draft: Draft, podUID: string): boolean {
  return wasBound(draft, podUID) || draft.world.memory.incarnation.bound?.podUID === podUID;
}

/**
 * Handles a container that ended before it was bound: retried or given up. The status counts it before the pod is
 * deleted.
 */
export function failedStart(draft: Draft, pod: StoredPod): 'Stop' {
  const { session } = draft.world;
  recordStartFailure(draft, pod.metadata.uid);
  const message = startFailure(pod);
  if (cannotWork(draft, pod)) {
    draft.problems.Pod = { reason: 'StartFailed', message };
    const index = freeIndex(draft);
    if (index === undefined) return 'Stop';
    const given = mayBeGiven(draft, pod);
    if (given) loseRunning(draft, pod);
    failLive(draft, index, { reason: 'StartFailed', message }, given);
  } else {
    draft.problems.Pod = draft.startFailed;
    loseRunning(draft, pod);
    const counted = session.status?.startFailures?.incarnation === session.status?.incarnation;
    if (!counted && draft.turns.live.length > 0 && !isFinished(draft)) return 'Stop';
  }
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: 'its container ended before it took a turn' });
  return 'Stop';
}

/** Writes the turn that runs in the pod as one whose pod is lost. A turn that waits for a decision goes on waiting. */
function loseRunning(draft: Draft, { metadata }: StoredPod): void {
  const { running: turn } = draft.turns;
  if (turn?.status.podUID !== metadata.uid) return;
  draft.actions.push({ do: 'WriteTurn', turn, status: afterLoss(draft, turn) });
}

/**
 * Reports whether a retry is useless. A container that ended by itself would do so again; one that could not be started, or that
 * ended from outside, may do better in another pod.
 */
function cannotWork(draft: Draft, pod: StoredPod): boolean {
  const { world } = draft;
  const terminated = ownContainer(pod)?.state?.terminated;
  const wasKilled = terminated?.exitCode === 137 || terminated?.exitCode === 143;
  const byItself = terminated && !pod.status?.reason && !wasKilled && !couldNotStart(pod);
  if (byItself) return true;
  const failures = withFailedStart(draft);
  if (!failures || failures.count < MAX_FAILED_STARTS) return false;
  // A program that three pods could not start is missing in its image; faults of nodes pass.
  if (couldNotStart(pod) || !causeOf(draft, pod.metadata.uid).fromOutside) return true;
  return world.now - Date.parse(failures.since) >= startMs(draft);
}

function startFailure(pod: StoredPod): string {
  const before = startedContainer(pod) ? [] : pod.status?.initContainerStatuses;
  const failed = before?.find(({ state }) => state?.terminated && state.terminated.exitCode !== 0);
  if (failed?.state?.terminated) {
    const { exitCode, reason, message } = failed.state.terminated;
    const why = [`exit code ${exitCode}`, [reason, message].filter(Boolean).join(': ')].filter(Boolean).join(', ');
    if (failed.name === INJECTOR_CONTAINER)
      return `The runner could not be brought into the pod (${why}); is BERTH_RUNNER_IMAGE of this release, and has the node room on its disk?`;
    if (failed.name === BUILDER)
      return `uv could not be brought into the pod (${why}); is BERTH_PYTHON_RUNNER_IMAGE of this release, and has the node room on its disk?`;
    return `Init container "${failed.name}", which is not Berth’s, failed before the session’s could start (${why}); see its log, and who adds it to pods.`;
  }
  const terminated = ownContainer(pod)?.state?.terminated;
  const words = [pod.status?.reason, pod.status?.message, terminated?.reason, terminated?.message].filter(Boolean);
  const code = terminated ? ` with exit code ${terminated.exitCode}` : '';
  const why = words.length > 0 ? ` (${words.join(': ')})` : '';
  return `The container ended${code} before it took a turn${why}; is the runner in the image, and has it enough memory?`;
}

/**
 * The index of the first turn that ends without one. Undefined while there is such a turn and an earlier leader can still give
 * the index to another.
 */
export function freeIndex({ world, turns }: Draft): number | undefined {
  const isSafe = world.leaderIsReady || turns.live.every(({ status }) => status.index !== undefined);
  return isSafe ? turns.lastIndex + 1 : undefined;
}

/**
 * Ends all turns but `other` that wait for the start; those without an index get theirs from `first` on. Held turns wait for
 * something else.
 */
export function failLive(draft: Draft, first: number, problem: Problem, other?: CachedTurn): void {
  let next = first;
  for (const turn of draft.turns.live) {
    if (turn === other) continue;
    if (draft.world.session.spec.suspend && !isGiven(turn)) continue;
    const status = ended(turn, { phase: 'Failed', ...problem }, draft.world.now);
    draft.actions.push({ do: 'WriteTurn', turn, status: { ...status, index: turn.status.index ?? next++ } });
  }
}

/** The turn that may have run in a pod that does not start, or whose runner does not answer. */
function mayHaveRun(draft: Draft, pod: StoredPod): CachedTurn | undefined {
  return isRunnerless(draft) ? mayRunUnseen(draft, pod) : mayBeGiven(draft, pod);
}

/**
 * The turn that is written for the pod and that its runner may have: an earlier leader gives a turn before the status says that
 * the pod was bound.
 */
function mayBeGiven({ world: { link }, turns }: Draft, pod: StoredPod): CachedTurn | undefined {
  const { uid } = pod.metadata;
  return turns.live.find(({ metadata, status }) => status.podUID === uid && !wasNeverSent(link, uid, metadata.uid));
}

/**
 * The turn whose program may run in a pod that reports no start. The pod is on a node without a scheduling gate, and the
 * kubelet starts a container before it reports it, also one whose image has just come.
 */
function mayRunUnseen(draft: Draft, { metadata, spec }: StoredPod): CachedTurn | undefined {
  const { running } = draft.turns;
  if (running?.status.podUID !== metadata.uid || spec.nodeName === undefined) return undefined;
  return wasLetRun(draft, metadata.uid) ? running : undefined;
}

/** Milliseconds within which the pod must become able to take turns. */
export function startMs({ world, turns }: Draft): number {
  return startLimit(turns.running ?? turns.live[0], world);
}

/** Kubernetes gives the time of a creation in whole seconds, rounded down. */
const ROUNDED_MS = 999;

/**
 * Time from which the start counts, milliseconds since the epoch. A claimed pod may be older than its session; one of its own was
 * created after the session was admitted.
 */
export function begunAt(draft: Draft, { metadata }: StoredPod): number {
  const admitted = draft.world.session.status?.conditions?.find(({ type }) => type === 'Admitted');
  const admittedAt = admitted ? Date.parse(admitted.lastTransitionTime) : 0;
  const createdAt = Date.parse(metadata.creationTimestamp);
  const latest = isFromPool(metadata.name) ? admittedAt : Math.min(admittedAt, createdAt + ROUNDED_MS);
  return waitedSince(draft, Math.max(createdAt, latest));
}

/**
 * Gives up a pod that is not bound within `timeouts.start`, and fails the turns that waited for it with the cause. A
 * problem that no wait can mend gives it up at once.
 */
export const slowStart: Policy = (draft) => {
  const { pod, link, now, memory } = draft.world;
  if (!pod || pod.metadata.deletionTimestamp) return undefined;
  const works = isRunnerless(draft)
    ? startedContainer(pod)
    : link?.phase === 'Bound' || wasBound(draft, pod.metadata.uid);
  if (works) return undefined;
  const reported = podProblem(pod);
  const problem = reported ?? memory.incarnation.startProblem;
  draft.problems.Pod = problem;
  // A running pod is asked first: a new leader does not know that it may have been bound long ago.
  const asked = startedContainer(pod) ? waitedSince(draft, link?.openedAt ?? now) + UNRESPONSIVE_MS : 0;
  const deadline = Math.max(begunAt(draft, pod) + startMs(draft), asked);
  if (now < deadline && !isHopeless(pod)) {
    wake(draft, deadline);
    return undefined;
  }
  const index = freeIndex(draft);
  if (index === undefined) return undefined;
  // The cache may be behind, and a pod that ran must not be reported as never started.
  if (memory.incarnation.podRead?.podUID !== pod.metadata.uid) {
    draft.actions.push({ do: 'ReadPod', pod });
    return 'Stop';
  }
  const reason = problem?.reason ?? 'StartFailed';
  const within = isHopeless(pod) ? '' : ` within timeouts.start (${Math.round(startMs(draft) / 1000)} s)`;
  const silent = startedContainer(pod) ? 'its runner did not answer' : 'its container did not start';
  const message = `The pod did not take turns${within}: ${problem?.message ?? silent}`;
  draft.problems.Pod = { reason, message };
  // The outcome of a turn that may have run is written once the pod has ended.
  failLive(draft, index, { reason, message }, mayHaveRun(draft, pod));
  const given = reported ? { problem: { reason, message } } : {};
  draft.actions.push({ do: 'CloseLink' }, { do: 'DeletePod', pod, why: silent, ...given });
  return 'Stop';
};
