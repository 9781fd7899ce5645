import { isConflict, isNotFound } from '../../core/kube/errors.ts';
import { turns } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../observed/world.ts';
import type { GarbageTools } from './context.ts';
import type { TurnFacts } from './facts.ts';

/** Deletes ended turns at the version that was read. Resolves with those that were deleted by this call. */
export async function removeTurns(
  { api, log, removals }: GarbageTools,
  session: CachedSession,
  over: TurnFacts[],
  signal: AbortSignal,
): Promise<Set<TurnFacts>> {
  const { metadata } = session;
  const namespace = metadata.namespace;
  const removed = new Set<TurnFacts>();
  for (const turn of over) {
    signal.throwIfAborted();
    const { name, uid, resourceVersion } = turn;
    try {
      await api.delete(turns, { namespace, name }, { uid, resourceVersion, signal: removals });
      removed.add(turn);
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
  if (removed.size > 0) log.info({ session: metadata.name, uid: metadata.uid, turns: removed.size }, 'history removed');
  return removed;
}
