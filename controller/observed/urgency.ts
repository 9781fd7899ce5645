import type { StoredPod } from '../../core/kube/builtin.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { isUnclaimed, sessionNameOf } from './session-pods.ts';
import type { CachedSession, CachedTurn } from './world.ts';

/** Keys `namespace/name` of the sessions that have pods, and then of those that have turns to run or to count. */
export function urgentKeys(caches: { allPods(): StoredPod[]; allTurns(): CachedTurn[] }): Set<string> {
  const pods = caches.allPods().filter((pod) => !isUnclaimed(pod));
  return new Set([
    ...pods.map((pod) => `${pod.metadata.namespace}/${sessionNameOf(pod)}`),
    ...caches.allTurns().map(({ metadata, spec }) => `${metadata.namespace}/${spec.session}`),
  ]);
}

/**
 * Reports whether somebody waits for what the session's pod does next. While nobody does, its runner is idle and the session
 * is Ready, and a new leader need not hear of it soon. `isPreempted`: another session waits for its slot.
 */
export function isWaitedFor(
  { metadata, spec, status = {} }: CachedSession,
  turns: readonly CachedTurn[],
  { isPreempted }: { isPreempted: boolean },
): boolean {
  if (isPreempted || metadata.deletionTimestamp !== undefined || status.phase !== 'Ready') return true;
  const { id, done } = status.suspendHandled ?? {};
  const isToSuspend = spec.suspendRequest !== undefined && !(spec.suspendRequest === id && done);
  const isToRestart = spec.restartRequest !== status.restartRequest && spec.restartRequest !== undefined;
  if (spec.suspend || isToSuspend || isToRestart) return true;
  return turns.some(({ status: turn }) => !isTerminal(turn?.phase));
}
