import { turns } from '../../core/resources/kinds.ts';
import type { Delivery } from '../observed/link-view.ts';
import { letGo } from './commit.ts';
import type { ReconcileContext } from './context.ts';

/**
 * Acknowledges a result that fits no running turn of the cache. The cache may be behind, so a live read decides. A result
 * that belongs to no turn is dropped. If the pod holds a state that is stored nowhere, the pod is deleted too.
 */
export async function acknowledgeStray(context: ReconcileContext, delivery: Delivery): Promise<void> {
  const { effects, world, signal } = context;
  const { api, caches, links } = effects;
  const { session } = world;
  const { turn: uid, attempt } = delivery.result.message;
  const namespace = session.metadata.namespace;
  const fieldSelector = `spec.session=${session.metadata.name}`;
  links.get(world.link?.podUID)?.stray();
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  const cached = world.turns.find(({ metadata }) => metadata.uid === uid);
  caches.saw(turns, ...items);
  const live = items.find((turn) => turn.metadata.uid === uid);
  const { phase, attempt: runs, podUID } = live?.status ?? {};
  // An unchanged turn would be acknowledged again in every reconcile.
  const isNews = live?.metadata.resourceVersion !== cached?.metadata.resourceVersion;
  if (isNews && phase === 'Running' && runs === attempt && podUID === world.link?.podUID) return;
  letGo(context, delivery, live);
}
