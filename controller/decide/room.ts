import { limitOf } from '../../core/store/store.ts';
import type { Problem } from '../observed/world.ts';
import { isRunnerless } from '../settings/runnerless.ts';
import { type Draft, wake } from './draft.ts';

/** Room in the store: a turn may not begin while what its session stored last time would be refused. */

/** Interval between two attempts to make room for the session, milliseconds. */
const MAKE_AGAIN_MS = 30_000;

/** Reasons of the condition StatePersisted for which a turn may make the state smaller. */
const OWN_TROUBLE: ReadonlySet<string | undefined> = new Set(['StateNotStored', 'StateTooLarge']);

/**
 * Reason why the next turn waits for room; undefined when it need not. A session whose own state is the trouble never
 * waits: its next turn may be what makes the state smaller.
 */
export function roomWait(draft: Draft): Problem | undefined {
  const { shortOfRoom, session, memory } = draft.world;
  if (!shortOfRoom || draft.turns.live.length === 0 || isRunnerless(draft)) return undefined;
  const persisted = session.status?.conditions?.find(({ type }) => type === 'StatePersisted');
  if (memory.incarnation.commitProblem) return undefined;
  if (persisted?.status === 'False' && OWN_TROUBLE.has(persisted.reason)) return undefined;
  const { namespace, bytes, share, wanted } = shortOfRoom;
  const { name, raise } = limitOf(shortOfRoom);
  return {
    reason: 'StoreShareUsed',
    message: `Namespace "${namespace}" holds ${bytes} bytes of the store, and its ${name} is ${share}; the last turn stored ${wanted}. Delete its sessions or turns that are no longer needed, or raise ${raise}.`,
  };
}

/** Has room made for a turn that waits for it, and looks again later. Reports whether the turn waits. */
export function awaitsRoom(draft: Draft): boolean {
  const { now, memory, shortOfRoom } = draft.world;
  if (!shortOfRoom || !roomWait(draft)) return false;
  const again = (memory.roomMadeAt ?? Number.NEGATIVE_INFINITY) + MAKE_AGAIN_MS;
  if (now < again) wake(draft, again);
  else draft.actions.push({ do: 'MakeRoom', bytes: shortOfRoom.wanted });
  return true;
}
