import { refOf } from '../../core/kube/cache.ts';
import type { Caches } from '../caches/caches.ts';
import { isGiven, isOwn } from '../observed/own-turns.ts';
import type { CachedSession, CachedTurn } from '../observed/world.ts';
import type { Membership } from './groups.ts';

/** Reports whether a turn counts for its group: one that waits for an approval must not come back above the limit. */
const counts = (turn: CachedTurn) => isGiven(turn) || turn.status.phase === 'AwaitingApproval';

/**
 * A session's part in its concurrency groups, from the caches. A running turn counts in the group that its status names, where it
 * began, also when its session is gone or has changed its group since. One without a name was begun by an earlier version, or
 * in no group; it counts in its session's group.
 */
export function membershipOf(
  key: string,
  session: CachedSession | undefined,
  caches: Pick<Caches, 'turnsNaming'>,
): Membership | undefined {
  const { namespace, name } = refOf(key);
  const wanted = session?.spec.concurrencyGroup;
  const group = wanted && `${namespace}/${wanted.name}`;
  const begun = new Map<string, string[]>();
  for (const turn of caches.turnsNaming(namespace, name)) {
    if (!counts(turn)) continue;
    const { concurrencyGroup } = turn.status;
    const own = session && isOwn(session, turn) ? group : undefined;
    const where = concurrencyGroup === undefined ? own : `${namespace}/${concurrencyGroup}`;
    if (where !== undefined) begun.set(where, [...(begun.get(where) ?? []), turn.metadata.name]);
  }
  if (group === undefined && begun.size === 0) return undefined;
  const others = [...begun].filter(([where]) => where !== group).map(([where, running]) => ({ group: where, running }));
  const mayBegin = wanted && session?.status?.phase !== 'Finished' && !session?.metadata.deletionTimestamp;
  return {
    group,
    running: (group !== undefined && begun.get(group)) || [],
    ...(mayBegin ? { limit: wanted.limit } : {}),
    ...(others.length > 0 ? { others } : {}),
  };
}
