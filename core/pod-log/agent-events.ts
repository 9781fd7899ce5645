/** Events of agents, as the readable text of a pod shows them. */

import { parseExact } from '../json.ts';

/** Prefix of the line of an event; a JSON object follows. */
const EVENT_PREFIX = '[berth event] ';

export interface EventLine {
  /** Number of the event in its pod. Together with the pod's incarnation it is the event's place in the session. */
  seq: number;
  /** Name of the turn. */
  turn: string;
  /** RFC 3339 with milliseconds. */
  at: string;
  /** Redacted JSON value of any type. */
  event: unknown;
}

export function eventLine(event: EventLine): string {
  return `${EVENT_PREFIX}${JSON.stringify(event)}\n`;
}

/** Returns undefined for a line that is not an event. */
export function parseEventLine(line: string): EventLine | undefined {
  if (!line.startsWith(EVENT_PREFIX)) return undefined;
  try {
    const { seq, turn, at, event } = parseExact(line.slice(EVENT_PREFIX.length)) as Partial<EventLine>;
    const isWhole = Number.isSafeInteger(seq) && typeof turn === 'string' && typeof at === 'string';
    return isWhole && event !== undefined ? { seq: seq as number, turn, at, event } : undefined;
  } catch {
    return undefined;
  }
}
