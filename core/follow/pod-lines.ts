/** Agent events and printed lines of a session, from the logs of its pods, one pod after the other. */
import type { EventLine } from '../pod-log/agent-events.ts';
import { type LogLine, podLogLines } from '../pod-log/lines.ts';
import { findPod, type LogApi, type NamedPod } from '../pod-log/open.ts';
import type { Clock } from '../runtime.ts';
import type { EventPlace } from './cursor.ts';
import { TimedIterator } from './timed-iterator.ts';
import type { SessionView } from './views.ts';

/** Two machines' clocks may differ by so much, milliseconds: rather a line twice than none. */
export const SKEW_MS = 2_000;
/** Time without a line after which a log has been read as far as it goes, milliseconds. */
const QUIET_MS = 2_000;
/** Limit of the lines that are held, characters, and what a line counts beside its text. */
const MAX_HELD = 256 * 1024;
const LINE_CHARS = 100;

/** Where the lines of a pod begin: at a time, RFC 3339, or at the event of that number, or before; 0 for all lines. */
export type LogStart = { sinceTime: string } | { seq: number };

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
    const sinceTime = 'sinceTime' in start ? start.sinceTime : undefined;
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
  /** Last event that was told. Absent: begin at `sinceTime`, RFC 3339, in the present pod. */
  from?: EventPlace | undefined;
  sinceTime: string;
  signal: AbortSignal;
}

/**
 * Yields every event after `from`, and the printed lines after it. `states` yields the session after each of its changes.
 * Events are numbered by the runner of their pod and come once; lines can come again when the stream goes on at a place.
 */
export async function* podLines(
  read: ReadLines,
  states: AsyncIterable<SessionView>,
  { clock, namespace, from, sinceTime, signal }: PodLinesOptions,
): AsyncGenerator<PodLine> {
  let place = from;
  let since = from ? undefined : sinceTime;
  let last: number | undefined;
  for await (const { metadata, podName, incarnation = 0 } of states) {
    // The pod's name is written before the pod is created or claimed, and the session changes again after that.
    if (!podName || incarnation === last) continue;
    // Each pod numbers its events from 1. A place in none of the session's pods says nothing.
    if ((place || last !== undefined) && place?.incarnation !== incarnation) place = { incarnation, seq: 0 };
    /** True while the place has not been met: the lines were told, unless the log does not have its event any more. */
    let isBefore = (place?.seq ?? 0) > 0;
    const held = new HeldText();
    const tellHeld = () =>
      held.take().map((text) => ({ kind: 'text' as const, text, place: place ?? { incarnation, seq: 0 } }));
    /** Lines that are stamped later, nanoseconds since the epoch, were printed after the event of the place was told. */
    const surelyNew = BigInt(clock.now() + SKEW_MS) * 1_000_000n;
    const start = since === undefined ? { seq: place?.seq ?? 0 } : { sinceTime: since };
    const pod = { namespace, name: podName, session: metadata.uid, incarnation };
    const lines = new TimedIterator(read(pod, start, signal)[Symbol.asyncIterator](), clock);
    try {
      for (;;) {
        const next = await lines.next(held.isEmpty ? undefined : QUIET_MS);
        if (next?.done) break;
        const line = next?.value;
        [last, since] = [incarnation, undefined];
        if (line?.event) {
          const { event } = line;
          const told = place?.seq ?? event.seq - 1;
          isBefore &&= event.seq < told;
          if (event.seq <= told) {
            held.take();
            continue;
          }
          yield* tellHeld();
          const events = event.seq - told - 1;
          if (events > 0) yield { kind: 'dropped', events, place: { incarnation, seq: event.seq - 1 } };
          place = { incarnation, seq: event.seq };
          yield { kind: 'event', event, place };
        } else {
          if (line) held.push(line.text);
          if (!line || line.place.newest > surelyNew) isBefore = false;
          if (!isBefore) yield* tellHeld();
        }
      }
    } finally {
      await lines.return();
    }
    yield* tellHeld();
  }
}

/** The newest of the lines for which it is not known yet whether they were told. */
class HeldText {
  #lines: string[] = [];
  #chars = 0;

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  push(text: string): void {
    this.#lines.push(text);
    this.#chars += LINE_CHARS + text.length;
    while (this.#chars > MAX_HELD) this.#chars -= LINE_CHARS + (this.#lines.shift() as string).length;
  }

  take(): string[] {
    const lines = this.#lines;
    [this.#lines, this.#chars] = [[], 0];
    return lines;
  }
}
