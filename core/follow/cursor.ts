/** Places in a stream of events, from which it can go on. */
import { compareVersions } from '../kube/resource-version.ts';

/** Newest versions of sessions and turns that were told; '0' before the first. */
export interface StateCursor {
  sessions: string;
  turns: string;
}

/** Number of an agent's event within the pod of an incarnation; both are 0 before the first. */
export interface EventPlace {
  incarnation: number;
  seq: number;
}

/** Place in the stream of a session. */
export interface SessionCursor {
  states: StateCursor;
  place: EventPlace;
  /** Beginning of the session's UID: another session of the name numbers its pods anew. Undefined: that of any session. */
  session?: string;
}

/** Length of the part of a UID that tells the sessions of a name apart. */
const UID_CHARS = 8;

const NUMBER = String.raw`(0|[1-9]\d{0,18})`;
const STATES = new RegExp(`^${NUMBER}\\.${NUMBER}$`);
const SESSION = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,14})(?:\\.([\\w-]{1,${UID_CHARS}}))?$`,
);

/** Returns the place in the stream of a namespace; undefined for a text that is none. */
export function parseStateCursor(text: string): StateCursor | undefined {
  const [, sessions, turns] = STATES.exec(text) ?? [];
  return sessions !== undefined && turns !== undefined ? { sessions, turns } : undefined;
}

/** Returns the place in the stream of a session; undefined for a text that is none. */
export function parseSessionCursor(text: string): SessionCursor | undefined {
  const [, sessions, turns, incarnation, seq, session] = SESSION.exec(text) ?? [];
  if (sessions === undefined || turns === undefined) return undefined;
  const place = { incarnation: Number(incarnation), seq: Number(seq) };
  return { states: { sessions, turns }, place, ...(session === undefined ? {} : { session }) };
}

export function formatStateCursor({ sessions, turns }: StateCursor): string {
  return `${sessions}.${turns}`;
}

export function formatSessionCursor({ states, place, session }: SessionCursor): string {
  const parts = [formatStateCursor(states), place.incarnation, place.seq, ...(session === undefined ? [] : [session])];
  return parts.join('.');
}

/** Returns what tells the session of a UID apart in a cursor. */
export const sessionOfUid = (uid: string): string => uid.slice(0, UID_CHARS);

/** Reports whether `version` is newer than the place; so is one that cannot be compared. */
export function isAfter(version: string, place: string): boolean {
  return (compareVersions(version, place) ?? 1) > 0;
}
