import { turns } from '../../core/resources/kinds.ts';
import type { Delivery } from '../link/view.ts';
import type { Pass } from './context.ts';

/**
 * A result that fits no running turn of the cache: the cache may be behind, so a live look decides. What really belongs to
 * nobody is let go of, and with it the pod where it holds a state that is stored nowhere.
 */
export async function acknowledgeStray({ effects, world, memory, signal }: Pass, delivery: Delivery): Promise<void> {
  const { api, caches, links } = effects;
  const { session } = world;
  const { turn: uid, attempt } = delivery.result.message;
  const namespace = session.metadata.namespace as string;
  const fieldSelector = `spec.session=${session.metadata.name}`;
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  for (const turn of items) caches.sawTurn(turn);
  const live = items.find((turn) => turn.metadata.uid === uid);
  if (live?.status?.phase === 'Running' && live.status.attempt === attempt) return;
  const podUID = world.link?.podUID;
  if (podUID && delivery.state && live?.status?.state?.digest !== delivery.state.message.digest) {
    memory.unstored = { podUID };
  }
  links.get(podUID)?.acknowledge(delivery.result.seq);
}
