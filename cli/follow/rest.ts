import { parseEventLine } from '../../core/pod-log/agent-events.ts';

/** Lines that are compared before those after them count as the rest. */
const COMPARED = 200;

/** Name by which a printed line and a line of the log are the same: events have a number. */
export function keyOfLine(line: string): string {
  const event = parseEventLine(line);
  return event ? eventKey(event.seq) : line;
}

export const eventKey = (seq: number): string => `[berth event] ${seq}`;

/**
 * Returns the lines of a turn's log that have not been printed: those after the last printed one, or all if none of it
 * was. `printed` has the keys of lines in their order, and can begin with lines of the turn before.
 */
export function restOfLog(printed: readonly string[], log: readonly string[]): string[] {
  const keys = log.map(keyOfLine);
  let best = { end: 0, same: 0 };
  for (let end = keys.length; end > 0; end--) {
    let same = 0;
    while (
      same < Math.min(end, printed.length, COMPARED) &&
      keys[end - 1 - same] === printed[printed.length - 1 - same]
    )
      same += 1;
    if (same > best.same) best = { end, same };
  }
  return log.slice(best.end);
}
