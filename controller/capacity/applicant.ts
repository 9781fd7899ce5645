import type { Applicant } from '../world/capacity-view.ts';
import type { CachedSession, CachedTurn } from '../world/world.ts';

/**
 * The session as it stands in line. It has waited since its status says so; before that is written, a new session since it
 * was created, and one that is to be woken since the first of its turns that waits.
 */
export function applicantOf(session: CachedSession, live: readonly CachedTurn[]): Applicant {
  const { name, namespace = '', creationTimestamp } = session.metadata;
  const { queue, incarnation = 0 } = session.status ?? {};
  const [turn] = live;
  const since = queue?.since ?? (incarnation > 0 && turn ? turn.metadata.creationTimestamp : creationTimestamp);
  return {
    key: `${namespace}/${name}`,
    namespace,
    class: session.spec.class,
    priority: session.spec.priority ?? 0,
    since: Date.parse(since),
  };
}
