import { turns } from '../../core/resources/kinds.ts';
import type { Delivery } from '../world/link-view.ts';
import { letGo } from './commit.ts';
import type { ReconcileContext } from './context.ts';

/**
 * A result that fits no running turn of the cache: the cache may be behind, so a live look decides. What really belongs to
 * nobody is let go of, and with it the pod where it holds a state that is stored nowhere.
 */
export async function acknowledgeStray(context: ReconcileContext, delivery: Delivery): Promise<void> {
  const { effects, world, signal } = context;
  const { api, caches } = effects;
  const { session } = world;
  const { turn: uid, attempt } = delivery.result.message;
  const namespace = session.metadata.namespace;
  const fieldSelector = `spec.session=${session.metadata.name}`;
  const { items } = await api.list(turns, { namespace, fieldSelector, signal });
  const cached = world.turns.find(({ metadata }) => metadata.uid === uid);
  for (const turn of items) caches.sawTurn(turn);
  const live = items.find((turn) => turn.metadata.uid === uid);
  const { phase, attempt: runs, podUID } = live?.status ?? {};
  // An unchanged turn would be acknowledged again in every reconcile.
  const isNews = live?.metadata.resourceVersion !== cached?.metadata.resourceVersion;
  if (isNews && phase === 'Running' && runs === attempt && podUID === world.link?.podUID) return;
  letGo(context, delivery, live);
}
