/** Events of agents, as the readable text of a pod shows them. */

import { parseExact } from '../json.ts';
import { EVENT_PREFIX } from './marks.ts';

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

/** Text in an event that looks like a frame is escaped: the container runtime can cut the line before it. */
export function eventLine(event: EventLine): string {
  return `${EVENT_PREFIX}${JSON.stringify(event).replaceAll('<<<BERTH_', '\\u003c<<BERTH_')}\n`;
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
