import { ANNOTATION_TOUCHED_AT } from '../../core/resources/names.ts';
import type { CachedSession, CachedTurn, World } from './world.ts';

/** Maximum clock skew accepted in the touched-at annotation: a client's clock may be this far ahead. */
const MAX_SKEW_MS = 5 * 60_000;
/** Time after the last activity within which a session is not preempted: its user is likely to go on. */
export const JUST_ACTIVE_MS = 10_000;
/** Minimum interval between writes of the agent's own activity between turns; no reader needs it sooner. */
const WRITE_EVERY_MS = 60_000;

/**
 * Last activity of the session, milliseconds since the epoch: a turn was created, started or ended, a client touched
 * the session, or its agent did something. Reads do not count. Never later than now.
 */
export function lastActivity(world: World): number {
  return Math.max(activityOfPeople(world), Math.min(world.link?.lastActivity ?? 0, world.now));
}

/** Last activity as `status.lastActiveAt` gets it: never earlier than what is written. */
export function lastActivityToWrite(world: World): string {
  const written = Date.parse(world.session.status?.lastActiveAt ?? '') || 0;
  const all = lastActivity(world);
  const at = all - written >= WRITE_EVERY_MS ? all : activityOfPeople(world);
  return new Date(Math.max(at, written)).toISOString();
}

function activityOfPeople({ session, turns, memory, now }: World): number {
  const uid = session.metadata.uid;
  const own = turns.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
  const moments = [
    Date.parse(session.status?.lastActiveAt ?? session.metadata.creationTimestamp),
    touchedAt(session, now),
    memory.turnCreatedAt ?? 0,
    ...own.flatMap(momentsOf),
  ];
  return Math.max(...moments.map((moment) => Math.min(moment, now)));
}

function momentsOf({ metadata, status }: CachedTurn): number[] {
  const { startedAt, finishedAt } = status;
  return [metadata.creationTimestamp, startedAt, finishedAt]
    .filter((at) => at !== undefined)
    .map((at) => Date.parse(at));
}

/** Time in the touched-at annotation; 0 when it is absent or further ahead than clock skew explains. */
export function touchedAt(session: Pick<CachedSession, 'metadata'>, now: number): number {
  const at = Date.parse(session.metadata.annotations?.[ANNOTATION_TOUCHED_AT] ?? '');
  return Number.isFinite(at) && at <= now + MAX_SKEW_MS ? at : 0;
}
