/** What an agent tells while it works, as it stands in the readable text of its pod. */

import { parseExact } from './json.ts';

/** What an event's line begins with; a JSON object follows. */
export const EVENT_PREFIX = '[berth event] ';

export interface EventLine {
  /** Number of its frame: with the pod's incarnation it is the event's place in the session. */
  seq: number;
  /** Name of the turn. */
  turn: string;
  /** RFC 3339 with milliseconds. */
  at: string;
  /** Any JSON, redacted. */
  event: unknown;
}

export function eventLine(event: EventLine): string {
  return `${EVENT_PREFIX}${JSON.stringify(event)}\n`;
}

/** undefined for a line that is no event. */
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
