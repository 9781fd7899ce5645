import type { Applicant } from '../observed/capacity-view.ts';
import type { CachedSession, CachedTurn } from '../observed/world.ts';

/**
 * The session as it waits in the queue. Its wait began at its status's `queue.since`; before that is written, at its
 * creation, or for a suspended session at the creation of its first waiting turn.
 */
export function applicantOf(session: CachedSession, live: readonly CachedTurn[]): Applicant {
  const { name, namespace, creationTimestamp } = session.metadata;
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
