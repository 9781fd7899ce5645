/** Agent events and printed lines of a session, from the logs of its pods, one pod after the other. */
import type { EventLine } from '../pod-log/agent-events.ts';
import { type LogLine, podLogLines } from '../pod-log/lines.ts';
import { findPod, type LogApi, type NamedPod } from '../pod-log/open.ts';
import { isLater, type LinePlace, timeBefore } from '../pod-log/position.ts';
import type { Clock } from '../runtime.ts';
import type { EventPlace } from './cursor.ts';
import { TimedIterator } from './timed-iterator.ts';
import type { SessionView } from './views.ts';

/** Tolerated difference of two machines' clocks, milliseconds: a line comes twice rather than never. */
export const SKEW_MS = 2_000;
/** Time without a line after which a log has been read as far as it goes, milliseconds. */
const QUIET_MS = 2_000;
/** Limit of the lines that are held, characters, and what a line counts beside its text. */
const MAX_HELD = 256 * 1024;
const LINE_CHARS = 100;

/**
 * Beginning of the lines of a pod: a time, RFC 3339, or the place of the line before. Where no line is known, it is the number
 * of an event, from which or from before it the lines are read; 0 for all lines.
 */
export type LogStart = { sinceTime: string } | { seq: number; line?: LinePlace | undefined };

/**
 * Reads the lines of a pod's log live, from there or from an earlier line on, until the pod is gone. There are none while the
 * pod is not that of the incarnation.
 */
export type ReadLines = (pod: NamedPod, start: LogStart, signal: AbortSignal) => AsyncIterable<LogLine>;

/** Reads each log by a stream of its own. */
export function ownLines(api: LogApi, clock: Clock): ReadLines {
  return async function* (named, start, signal) {
    const pod = await findPod(api, named, signal);
    if (!pod) return;
    const sinceTime = 'sinceTime' in start ? start.sinceTime : start.line && timeBefore(start.line);
    for await (const lines of podLogLines(api, clock, pod, { sinceTime, follow: true, signal })) yield* lines;
  };
}

export type PodLine = { place: EventPlace } & (
  | { kind: 'event'; event: EventLine }
  | { kind: 'dropped'; events: number }
  | { kind: 'text'; text: string }
);

export interface PodLinesOptions {
  clock: Clock;
  namespace: string;
  /** Last event that was sent. Default: begin at `sinceTime`, RFC 3339, in the present pod. */
  from?: EventPlace | undefined;
  sinceTime: string;
  signal: AbortSignal;
}

/**
 * Yields every event after `from`, and the printed lines after it. `states` yields the session after each of its changes.
 * Lines after the place are new, with any number: a runner of an earlier release lets its agent print events with numbers of
 * its own. Numbers decide where no line of the place is known.
 */
export async function* podLines(
  read: ReadLines,
  states: AsyncIterable<SessionView>,
  { clock, namespace, from, sinceTime, signal }: PodLinesOptions,
): AsyncGenerator<PodLine> {
  /** Number of the last event that was sent; undefined where the stream began among the lines of a pod. */
  let seq = from?.line && from.seq === 0 ? undefined : from?.seq;
  /** Place, in the log of the present pod, of the last line that was sent. */
  let at = from?.line;
  let since = from ? undefined : sinceTime;
  let last: number | undefined;
  for await (const { metadata, podName, incarnation = 0 } of states) {
    // The pod's name is written before the pod is created or claimed, and the session changes again after that.
    if (!podName || incarnation === last) continue;
    // Each pod numbers its events from 1. A place in none of the session's pods says nothing.
    if ((last ?? from?.incarnation ?? incarnation) !== incarnation) [seq, at] = [0, undefined];
    const here = (): EventPlace => ({ incarnation, seq: seq ?? 0, line: at });
    /** True until the place is met. Lines before it were sent, unless the log does not have its event any more. */
    let isBefore = !at && (seq ?? 0) > 0;
    const held = new HeldText();
    const takeHeld = () =>
      held.take().map((line) => {
        at = line.at;
        return { kind: 'text' as const, text: line.text, place: here() };
      });
    /** Time, nanoseconds since the epoch: lines with a later stamp were printed after the event of the place was sent. */
    const surelyNew = BigInt(clock.now() + SKEW_MS) * 1_000_000n;
    const start = since === undefined ? { seq: seq ?? 0, line: at } : { sinceTime: since };
    const pod = { namespace, name: podName, session: metadata.uid, incarnation };
    const lines = new TimedIterator(read(pod, start, signal)[Symbol.asyncIterator](), clock);
    try {
      for (;;) {
        const next = await lines.next(held.isEmpty ? undefined : QUIET_MS);
        if (next?.done) break;
        const line = next?.value;
        [last, since] = [incarnation, undefined];
        const isSent = line && at && !isLater(line.place, at);
        if (line?.event) {
          const { event } = line;
          const sent = seq ?? event.seq - 1;
          isBefore &&= event.seq < sent;
          // A line can seem to be earlier after a rotation of the log, but not the event that is next.
          const isKnown = at ? isSent && event.seq !== sent + 1 : event.seq <= sent && line.place.newest <= surelyNew;
          if (isKnown) {
            held.take();
            continue;
          }
          yield* takeHeld();
          const events = event.seq - sent - 1;
          seq = event.seq - 1;
          if (events > 0) yield { kind: 'dropped', events, place: here() };
          seq = event.seq;
          if (!isSent) at = line.place;
          yield { kind: 'event', event, place: here() };
        } else if (!isSent) {
          if (line) held.push(line.text, line.place);
          if (!line || line.place.newest > surelyNew) isBefore = false;
          if (!isBefore) yield* takeHeld();
        }
      }
    } finally {
      await lines.return();
    }
    yield* takeHeld();
  }
}

/** The newest of the lines that may have been sent or not, with their places. */
class HeldText {
  #lines: { text: string; at: LinePlace }[] = [];
  #chars = 0;

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  push(text: string, at: LinePlace): void {
    // All parts of a line that comes in parts are later than what was sent before.
    this.#lines.push({ text, at: { ...at, line: Math.floor(at.line) } });
    this.#chars += LINE_CHARS + text.length;
    while (this.#chars > MAX_HELD) this.#chars -= LINE_CHARS + (this.#lines.shift() as { text: string }).text.length;
  }

  take(): { text: string; at: LinePlace }[] {
    const lines = this.#lines;
    [this.#lines, this.#chars] = [[], 0];
    return lines;
  }
}
