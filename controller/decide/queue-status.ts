import type { SessionStatus } from '../../core/resources/session.ts';
import type { Waiting } from '../world/world.ts';
import { type Draft, problemOf, wake } from './draft.ts';
import { groupWait } from './group.ts';

/** What a session's status says while it waits: for a place, or for its concurrency group. */

/** A place in the queue is written so often at most, */
const WRITE_MS = 10_000;
/** and less often far behind, where it says little: all who wait together cost some tens of writes a second at most. */
const WRITE_MS_PER_POSITION = 200;

/** Until when what was written stands, milliseconds since the epoch. It is written at once when something else is waited for. */
function standsUntil({ world }: Draft, place: Waiting): number {
  const { queue } = world.session.status ?? {};
  const writtenAt = world.memory.queueWrittenAt;
  if (queue?.reason !== place.waiting || writtenAt === undefined) return world.now;
  return writtenAt + Math.max(WRITE_MS, WRITE_MS_PER_POSITION * place.position);
}

/** Why there is no place, in words; as written, as long as that stands. */
export function waitMessage(draft: Draft, place: Waiting): string {
  const written = draft.world.session.status?.conditions?.find(({ type }) => type === 'Admitted');
  const stands = draft.world.now < standsUntil(draft, place) && written?.reason === place.waiting;
  return stands ? written.message : place.message;
}

/** `status.queue` as it is to be; undefined when nothing is waited for. */
export function queueStatus(draft: Draft, failures: SessionStatus['startFailures']): SessionStatus['queue'] {
  const { session, applicant, slot, now } = draft.world;
  const before = session.status?.queue;
  const since = new Date(applicant.since).toISOString();
  if (draft.waiting && typeof slot === 'object') {
    const until = standsUntil(draft, slot);
    wake(draft, now < until ? until : now + WRITE_MS);
    if (now < until) return before;
    const { position, waiting: reason, holders } = slot;
    return { position, since, reason, ...(holders ? { holders } : {}) };
  }
  if (!draft.released && session.status?.podName) return undefined;
  if (failures?.reason === 'QuotaExceeded') return { since: before?.since ?? failures.since, reason: 'QuotaExceeded' };
  const limited = groupWait(draft);
  if (limited && problemOf(draft)?.reason === limited.reason) return { since, reason: limited.reason };
  return undefined;
}
