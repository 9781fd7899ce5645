import type { Caches } from '../caches/caches.ts';
import { isGiven, isOwn } from '../world/own-turns.ts';
import type { CachedSession, CachedTurn } from '../world/world.ts';
import type { Membership } from './groups.ts';

/** Reports whether a turn counts for its group: one that waits for an approval must not come back above the limit. */
const counts = (turn: CachedTurn) => isGiven(turn) || turn.status.phase === 'AwaitingApproval';

/**
 * A session's part in its concurrency group, from the caches. A running turn counts in the group where it began, also
 * when its session is gone or has changed its group since; `before` is the group that the session was last observed in.
 */
export function membershipOf(
  key: string,
  session: CachedSession | undefined,
  caches: Pick<Caches, 'turnsNaming'>,
  before: string | undefined,
): Membership | undefined {
  const slash = key.indexOf('/');
  const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
  const wanted = session?.spec.concurrencyGroup;
  if (!wanted && before === undefined) return undefined;
  const turns = caches.turnsNaming(namespace, name);
  const own = session ? turns.filter((turn) => isOwn(session, turn)) : turns;
  const running = own.filter(counts).map(({ metadata }) => metadata.name);
  const group = wanted && `${namespace}/${wanted.name}`;
  if (running.length > 0 && before !== undefined && before !== group) return { group: before, running };
  if (!group) return undefined;
  const mayBegin = session?.status?.phase !== 'Finished' && !session?.metadata.deletionTimestamp;
  return { group, running, ...(mayBegin ? { limit: wanted.limit } : {}) };
}
