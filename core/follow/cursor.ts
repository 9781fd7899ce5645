/** Places in a stream of events, from which it can go on. */

import { defined } from '../defined.ts';
import { compareVersions } from '../kube/resource-version.ts';
import type { LinePlace } from '../pod-log/position.ts';

/** Newest versions of sessions and turns that were sent; '0' before the first. */
export interface StateCursor {
  sessions: string;
  turns: string;
}

/** Number of an agent's event within the pod of an incarnation; both are 0 before the first. */
export interface EventPlace {
  incarnation: number;
  seq: number;
  /** Place in the pod's log of the last line that was sent, an event or text; undefined before the first, or if not known. */
  line?: LinePlace | undefined;
}

/** Place in the stream of a session. */
export interface SessionCursor {
  states: StateCursor;
  place: EventPlace;
  /** Beginning of the session's UID: another session of the name numbers its pods anew. Undefined: any session. */
  session?: string;
}

/** Length of the part of a UID that distinguishes the sessions of a name. */
const UID_CHARS = 8;

const NUMBER = String.raw`(0|[1-9]\d{0,18})`;
/** Fields that a newer version has added to the places of a session's stream. */
const UNKNOWN = String.raw`(?:\.[\w-]{1,32}){0,8}`;
const STATES = new RegExp(`^${NUMBER}\\.${NUMBER}$`);
const EVENT = String.raw`(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,14})`;
const LINE = String.raw`(0|[1-9]\d{0,19})\.(0|[1-9]\d{0,14})`;
const SESSION = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${EVENT}(?:\\.([\\w-]{1,${UID_CHARS}})(?:\\.${LINE})?${UNKNOWN})?$`,
);

/** Returns the place in the stream of a namespace; undefined for a text that is none. */
export function parseStateCursor(text: string): StateCursor | undefined {
  const [, sessions, turns] = STATES.exec(text) ?? [];
  return sessions !== undefined && turns !== undefined ? { sessions, turns } : undefined;
}

/** Returns the place in the stream of a session; undefined for a text that is none. */
export function parseSessionCursor(text: string): SessionCursor | undefined {
  const [, sessions, turns, incarnation, seq, session, newest, line] = SESSION.exec(text) ?? [];
  if (sessions === undefined || turns === undefined) return undefined;
  const place: EventPlace = { incarnation: Number(incarnation), seq: Number(seq) };
  if (newest !== undefined) place.line = { newest: BigInt(newest), line: Number(line) };
  return { states: { sessions, turns }, place, ...defined({ session }) };
}

export function formatStateCursor({ sessions, turns }: StateCursor): string {
  return `${sessions}.${turns}`;
}

export function formatSessionCursor({ states, place, session }: SessionCursor): string {
  const parts: unknown[] = [formatStateCursor(states), place.incarnation, place.seq];
  if (session !== undefined) {
    parts.push(session);
    // A line that is sent in parts is sent again from its beginning, because readers part it at different places.
    if (place.line && place.line.newest >= 0n) parts.push(place.line.newest, Math.floor(place.line.line));
  }
  return parts.join('.');
}

/** Returns the part of the UID that distinguishes the session in a cursor. */
export const sessionOfUid = (uid: string): string => uid.slice(0, UID_CHARS);

/** Reports whether `version` is newer than the place; so is one that cannot be compared. */
export function isAfter(version: string, place: string): boolean {
  return (compareVersions(version, place) ?? 1) > 0;
}
