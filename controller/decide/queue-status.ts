import type { SessionStatus } from '../../core/resources/session.ts';
import type { Waiting } from '../observed/world.ts';
import { type Draft, problemOf, wake } from './draft.ts';
import { groupWait } from './group.ts';
import { roomWait } from './room.ts';

/** Status of a session that waits for a slot or for its concurrency group. */

/** Minimum interval between writes of a position in the queue, */
const WRITE_MS = 10_000;
/** longer for positions far behind: all waiting sessions together then cost some tens of writes a second at most. */
const WRITE_MS_PER_POSITION = 200;

/**
 * Time until which the written position stays, milliseconds since the epoch. A new reason for the wait is written at
 * once.
 */
function writtenUntil({ world }: Draft, wait: Waiting): number {
  const { queue } = world.session.status ?? {};
  const writtenAt = world.memory.queueWrittenAt;
  if (queue?.reason !== wait.waiting || writtenAt === undefined) return world.now;
  return writtenAt + Math.max(WRITE_MS, WRITE_MS_PER_POSITION * wait.position);
}

/** Message why there is no slot; the written one while it stays. */
export function waitMessage(draft: Draft, wait: Waiting): string {
  const written = draft.world.session.status?.conditions?.find(({ type }) => type === 'Admitted');
  const isCurrent = draft.world.now < writtenUntil(draft, wait) && written?.reason === wait.waiting;
  return isCurrent ? written.message : wait.message;
}

/** The next `status.queue`; undefined while the session waits for nothing. */
export function queueStatus(draft: Draft, failures: SessionStatus['startFailures']): SessionStatus['queue'] {
  const { session, applicant, slot, now } = draft.world;
  const before = session.status?.queue;
  const since = new Date(applicant.since).toISOString();
  if (draft.waiting && typeof slot === 'object') {
    const until = writtenUntil(draft, slot);
    wake(draft, now < until ? until : now + WRITE_MS);
    if (now < until) return before;
    const { position, waiting: reason, holders } = slot;
    return { position, since, reason, ...(holders ? { holders } : {}) };
  }
  if (draft.admission || (!draft.released && session.status?.podName)) return undefined;
  if (failures?.reason === 'QuotaExceeded') return { since: before?.since ?? failures.since, reason: 'QuotaExceeded' };
  const limited = groupWait(draft) ?? roomWait(draft);
  if (limited && problemOf(draft)?.reason === limited.reason) return { since, reason: limited.reason };
  return undefined;
}
