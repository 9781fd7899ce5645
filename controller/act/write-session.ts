import { isDeepStrictEqual } from 'node:util';
import { parseExact } from '../../core/json.ts';
import { sessions } from '../../core/resources/kinds.ts';
import type { SessionStatus } from '../../core/resources/session.ts';
import type { Decision } from '../decide/decide.ts';
import { writeWaitMs } from '../decide/write-wait.ts';
import { learn } from '../observed/memory.ts';
import { changedAt } from '../status/conditions.ts';
import { noteworthy } from '../status/events.ts';
import { withPhaseSince } from '../status/reason.ts';
import type { ReconcileContext } from './context.ts';
import { writingSession } from './too-large.ts';

export interface SessionWrite extends Pick<Decision, 'status' | 'counted'> {
  /** True while a turn of the session waits or runs: activity alone is then written with the next change. */
  hasLive: boolean;
  /** Aborts when the controller has to stop. */
  closing: AbortSignal;
}

/**
 * The one status write of a reconcile, if anything changed. Resolves with the milliseconds after which a status that was not
 * written has to be; undefined: it was, or says nothing new.
 */
export async function writeSession(
  context: ReconcileContext,
  { status, counted, hasLive, closing }: SessionWrite,
): Promise<number | undefined> {
  const { effects, key, memory, signal, world } = context;
  const { session } = world;
  const before = session.status ?? {};
  const compared = hasLive && before.phase ? { ...status, lastActiveAt: before.lastActiveAt } : status;
  // The API server stores no fields that are undefined.
  const plain = parseExact(JSON.stringify(compared)) as SessionStatus;
  const stored = parseExact(JSON.stringify(before)) as SessionStatus;
  if (isDeepStrictEqual(plain, stored)) return undefined;
  const { statuses, caches, links, log, clock, notify } = effects;
  const { namespace, name } = session.metadata;
  const { bindSentAt } = links.get(world.link?.podUID)?.view ?? {};
  const waitMs = writeWaitMs({
    before: stored,
    next: plain,
    counted,
    present: new Set(caches.turnsNaming(namespace, name).map(({ metadata }) => metadata.uid)),
    gaveAt: memory.gaveAt,
    countedAt: memory.countedAt,
    monotonic: clock.monotonic(),
    boundMsAgo: bindSentAt === undefined ? undefined : clock.now() - bindSentAt,
  });
  if (waitMs > 0) return waitMs;
  closing.throwIfAborted();
  const conditions = changedAt(status.conditions ?? [], before.conditions, clock.now());
  const next = withPhaseSince({ ...status, conditions }, before, clock.now());
  await writingSession(effects, session, () => statuses.write(sessions, session.metadata, next, signal));
  if (status.phase !== before.phase)
    log.info({ session: key, phase: status.phase, was: before.phase }, 'session phase');
  if (!isDeepStrictEqual(before.queue, plain.queue)) learn(memory, { fact: 'QueueWritten', at: clock.now() });
  if (counted.length > 0) learn(memory, { fact: 'TurnsCounted', at: clock.monotonic() });
  for (const event of noteworthy(before, status)) notify(session, event);
  return undefined;
}
