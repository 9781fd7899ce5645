import { isTerminal } from '../../core/resources/turn-phases.ts';
import { awaitsOnlyTurn } from '../decide/missing-turn.ts';
import { learn } from '../observed/memory.ts';
import { ownTurns } from '../observed/own-turns.ts';
import type { CachedSession, CachedTurn, SessionMemory } from '../observed/world.ts';
import type { Effects } from './context.ts';

/**
 * Reads the session's turns before the first index is given, before the first ended turn is counted, before a runner is
 * bound and before the only turn is missed. An earlier leader may have ended turns that the watch does not show yet and
 * that the list of live turns leaves out. An index needs the last index, a count all turns before, a binding the last
 * state.
 */
export async function readTurns(
  effects: Pick<Effects, 'caches' | 'leader' | 'links'>,
  session: CachedSession,
  memory: SessionMemory,
  signal: AbortSignal,
): Promise<void> {
  const { caches, leader } = effects;
  if (memory.knowsTurns || !leader.isReady()) return;
  const { namespace, name } = session.metadata;
  const isNew = ({ status }: CachedTurn) => status.index === undefined && !isTerminal(status.phase);
  const naming = caches.turnsNaming(namespace, name);
  const isWanted =
    naming.some(isNew) ||
    ownTurns(session, naming).uncounted.length > 0 ||
    awaitsOnlyTurn(session) ||
    mayBind(effects, session);
  if (!isWanted) return;
  await caches.refreshTurns(namespace, name, signal);
  learn(memory, { fact: 'TurnsRead' });
}

/** Reports whether a runner of the session waits to be bound. */
function mayBind(
  { caches, links }: Pick<Effects, 'caches' | 'links'>,
  { metadata: { uid }, status }: CachedSession,
): boolean {
  const pod = caches.podsOf(uid).find(({ metadata }) => metadata.name === status?.podName);
  return links.get(pod?.metadata.uid)?.view.phase === 'Unbound';
}
