import { sessions, turns } from '../../core/resources/kinds.ts';
import type { StateRef } from '../../core/resources/schema.ts';
import { isTerminal } from '../../core/resources/turn.ts';
import { StoreFullError } from '../../core/store/store.ts';
import type { Pass } from './context.ts';
import { storeState } from './store-delivery.ts';

/**
 * The runner has refused turns since it was asked to and has handed over its state: it is stored where it differs from the
 * committed one. Then a second look, live and consistent: a turn that came in between, or a change of mind, undoes it.
 */
export async function verifySuspension(pass: Pass): Promise<void> {
  const { effects, world, memory, key, signal } = pass;
  const { api, caches, links, log } = effects;
  const { session } = world;
  const link = links.get(world.link?.podUID);
  const snapshot = world.link?.snapshot;
  if (!link || !snapshot || !world.link) return;
  const namespace = session.metadata.namespace as string;

  const same = session.status?.state?.digest === snapshot.message.digest;
  let state: StateRef | 'Unchanged' = 'Unchanged';
  try {
    if (!same) state = await storeState(pass, snapshot);
  } catch (error) {
    if (!(error instanceof StoreFullError)) throw error;
    abortSuspension(pass, error.message);
    return;
  }

  const live = await api.get(sessions, { namespace, name: session.metadata.name }, { signal });
  const fieldSelector = `spec.session=${session.metadata.name}`;
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  caches.sawSession(live);
  for (const turn of items) caches.sawTurn(turn);
  const changed =
    live.metadata.uid !== session.metadata.uid ||
    live.spec.suspend !== session.spec.suspend ||
    live.spec.suspendRequest !== session.spec.suspendRequest;
  const waiting = !live.spec.suspend && items.some((turn) => !isTerminal(turn.status?.phase));
  if (changed || waiting) {
    log.info({ session: key }, 'suspension undone: something came in between');
    link.resume();
    return;
  }
  link.acknowledge(snapshot.seq);
  memory.suspension = { podUID: world.link.podUID, verified: state };
}

/** Between two attempts to suspend a session whose state cannot be stored. */
const SUSPEND_AGAIN_MS = 60_000;

/** The state cannot be had or stored: the runner takes turns again, people are told, and it is tried again later. */
export function abortSuspension({ effects, world, memory, key }: Pass, message: string): void {
  effects.links.get(world.link?.podUID)?.resume();
  memory.suspension = undefined;
  memory.suspendAgainAt = effects.clock.now() + SUSPEND_AGAIN_MS;
  memory.commitProblem = { reason: 'StateNotStored', message, since: effects.clock.now() };
  effects.log.warn({ session: key, why: message }, 'suspension aborted');
}
