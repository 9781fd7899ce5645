import { ifThere } from '../../core/kube/errors.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { CachedSession } from '../observed/world.ts';
import { type GarbageTools, MAX_REMOVALS } from './context.ts';
import { isLater, type StatePosition, stateUse } from './facts.ts';
import { isSuperseded } from './stored.ts';

/**
 * Removes the stored states of a session that `countedState` has superseded, without reading its turns: no turn that the
 * caches lack, because it is counted, needs a state that is not the session's. Resolves with their number and whether none is
 * left.
 */
export async function sweepStates(
  { api, caches, store, log, removals }: GarbageTools,
  session: CachedSession,
  countedState: StatePosition | undefined,
  signal: AbortSignal,
): Promise<{ removed: number; isDone: boolean }> {
  const { namespace, name, uid } = session.metadata;
  if (!countedState) return { removed: 0, isDone: false };
  const stored = await store.list({ namespace, sessionUID: uid }, signal);
  const before = stored.filter((entry) => entry.kind === 'State' && isLater(countedState, entry));
  if (before.length === 0) return { removed: 0, isDone: true };
  const live = await ifThere(api.get(sessions, { namespace, name }, { signal }));
  if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp) return { removed: 0, isDone: true };
  const uses = caches.turnsNaming(namespace, name).map(({ status }) => stateUse(status));
  const old = before.filter((entry) => isSuperseded(entry, live.status ?? {}, uses));
  for (const { sessionUID, incarnation, seq } of old.slice(0, MAX_REMOVALS)) {
    signal.throwIfAborted();
    await store.delete({ namespace, sessionUID, incarnation, seq, kind: 'State' }, removals);
  }
  if (old.length > 0) log.info({ session: name, uid, blobs: old.length }, 'superseded states removed');
  return { removed: Math.min(old.length, MAX_REMOVALS), isDone: old.length <= MAX_REMOVALS };
}
