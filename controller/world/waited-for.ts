import { isTerminal } from '../../core/resources/turn-phases.ts';
import type { CachedSession, CachedTurn } from './world.ts';

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
