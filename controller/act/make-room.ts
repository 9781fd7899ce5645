import { unlessAborted } from '../../core/abort.ts';
import { learn } from '../observed/memory.ts';
import type { ReconcileContext } from './context.ts';

/** Counts anew and, if that does not show enough room for the session's next turn, has some made in its namespace. */
export async function makeRoom(
  { effects, world, memory, signal }: ReconcileContext,
  { bytes }: { bytes: number },
): Promise<void> {
  const { store, rooms, clock, withoutWorker } = effects;
  const { namespace, uid } = world.session.metadata;
  const at = clock.now();
  await store.recount(signal);
  const isShort = store.shortOf(namespace, uid, memory.historyStored ?? 0) !== undefined;
  if (isShort) await withoutWorker(() => unlessAborted(rooms.makeRoom(namespace, bytes), signal));
  learn(memory, { fact: 'RoomMade', at });
}
