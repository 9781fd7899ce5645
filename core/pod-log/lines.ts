import { ReadableText } from '../frames/readable.ts';
import type { Clock } from '../runtime.ts';
import { type EventLine, parseEventLine } from './agent-events.ts';
import { type FollowOptions, readPodLog } from './follow.ts';
import type { LogApi, LogPod } from './open.ts';
import { BEFORE_ALL, type LinePlace } from './position.ts';

/** Length of a piece of a line, characters; a longer line comes in several. */
const MAX_PIECE = 64 * 1024;

/** A line of a pod's readable text, without its line feed: an event of the agent, or printed text. */
export type LogLine = { place: LinePlace; length: number } & (
  | { event: EventLine; text?: never }
  | { event?: never; text: string }
);

/**
 * Yields the lines of a pod's log, as many at once as have arrived; else as `readPodLog` does. All lines of a pod without a
 * runner are text: nobody keeps its program from printing what looks like an event.
 */
export async function* podLogLines(
  api: LogApi,
  clock: Clock,
  pod: LogPod,
  options: FollowOptions & { follow: boolean },
): AsyncGenerator<LogLine[]> {
  const readable = new ReadableText(pod);
  let rest = '';
  let last = BEFORE_ALL;
  for await (const pieces of readPodLog(api, clock, pod, options)) {
    const lines: LogLine[] = [];
    for (const { bytes, place } of pieces) {
      rest += readable.push(bytes);
      last = place;
      if (rest.endsWith('\n')) {
        lines.push(lineOf(rest.slice(0, -1), place, pod));
        rest = '';
      }
      for (; rest.length > MAX_PIECE; rest = rest.slice(MAX_PIECE)) {
        lines.push({ text: rest.slice(0, MAX_PIECE), length: MAX_PIECE, place: partOf(place) });
      }
    }
    if (lines.length > 0) yield lines;
  }
  // Without `follow` the last line may go on.
  rest += options.follow ? readable.end() : '';
  if (options.follow && rest) yield [lineOf(rest, partOf(last), pod)];
}

function lineOf(line: string, place: LinePlace, { hasRunner }: LogPod): LogLine {
  const event = hasRunner ? parseEventLine(line) : undefined;
  const { length } = line;
  return event ? { event, length, place } : { text: line, length, place };
}

const partOf = ({ newest, line }: LinePlace): LinePlace => ({ newest, line: line - 0.5 });
