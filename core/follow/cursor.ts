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

const NUMBER = String.raw`(0|[1-9]\d{0,18})`;
const STATES = new RegExp(`^${NUMBER}\\.${NUMBER}$`);
const SESSION = new RegExp(`^${NUMBER}\\.${NUMBER}\\.(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,14})$`);

/** Returns the place in the stream of a namespace; undefined for a text that is none. */
export function parseStateCursor(text: string): StateCursor | undefined {
  const [, sessions, turns] = STATES.exec(text) ?? [];
  return sessions !== undefined && turns !== undefined ? { sessions, turns } : undefined;
}

/** Returns the place in the stream of a session; undefined for a text that is none. */
export function parseSessionCursor(text: string): { states: StateCursor; place: EventPlace } | undefined {
  const [, sessions, turns, incarnation, seq] = SESSION.exec(text) ?? [];
  if (sessions === undefined || turns === undefined) return undefined;
  return { states: { sessions, turns }, place: { incarnation: Number(incarnation), seq: Number(seq) } };
}

export function formatCursor({ sessions, turns }: StateCursor, place?: EventPlace): string {
  return [sessions, turns, ...(place ? [place.incarnation, place.seq] : [])].join('.');
}

/** Reports whether `version` is newer than the place; so is one that cannot be compared. */
export function isAfter(version: string, place: string): boolean {
  return (compareVersions(version, place) ?? 1) > 0;
}
