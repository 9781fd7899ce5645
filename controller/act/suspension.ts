import { sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn.ts';
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
  const state = same ? 'Unchanged' : await storeState(pass, snapshot);

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
