import { ANNOTATION_TOUCHED_AT } from '../../core/resources/names.ts';
import type { CachedSession, CachedTurn, World } from './world.ts';

/** How far a clock of somebody who touches a session may be ahead. */
const MAX_SKEW_MS = 5 * 60_000;
/** One that was active so lately does not give way: whoever made it or talked to it is about to go on. */
export const JUST_ACTIVE_MS = 10_000;
/** The agent's own activity between turns is written this often at most: it matters to nobody sooner. */
const WRITE_EVERY_MS = 60_000;

/**
 * When the session was last active, milliseconds since the epoch: a turn was created, started or ended, somebody touched
 * it, or its agent did something. Nothing else counts, looking least of all. Never later than now.
 */
export function lastActivity(world: World): number {
  return Math.max(activityOfPeople(world), Math.min(world.link?.lastActivity ?? 0, world.now));
}

/** The same for the status: it never goes back. */
export function lastActivityToWrite(world: World): string {
  const written = Date.parse(world.session.status?.lastActiveAt ?? '') || 0;
  const all = lastActivity(world);
  const at = all - written >= WRITE_EVERY_MS ? all : activityOfPeople(world);
  return new Date(Math.max(at, written)).toISOString();
}

function activityOfPeople({ session, turns, now }: World): number {
  const uid = session.metadata.uid;
  const own = turns.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid));
  const moments = [
    Date.parse(session.status?.lastActiveAt ?? session.metadata.creationTimestamp),
    touchedAt(session, now),
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

/** What the annotation says; 0 for a time that nobody's clock can show yet, or for none. */
export function touchedAt(session: Pick<CachedSession, 'metadata'>, now: number): number {
  const at = Date.parse(session.metadata.annotations?.[ANNOTATION_TOUCHED_AT] ?? '');
  return Number.isFinite(at) && at <= now + MAX_SKEW_MS ? at : 0;
}
