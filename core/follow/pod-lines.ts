/** Agent events and printed lines of a session, from the logs of its pods, one pod after the other. */
import type { KubeApi } from '../kube/types.ts';
import type { EventLine } from '../pod-log/agent-events.ts';
import { type LogLine, podLogLines } from '../pod-log/lines.ts';
import type { Clock } from '../runtime.ts';
import type { EventPlace } from './cursor.ts';
import type { SessionView } from './views.ts';

/** Where the lines of a pod begin: at a time, RFC 3339, or at the event of that number, or before; 0 for all lines. */
export type LogStart = { sinceTime: string } | { seq: number };

/** Reads the lines of a pod's log live, from there or from an earlier line on, until the pod is gone. */
export type ReadLines = (
  ref: { namespace: string; name: string },
  start: LogStart,
  signal: AbortSignal,
) => AsyncIterable<LogLine>;

/** Reads each log by a stream of its own. */
export function ownLines(api: Pick<KubeApi, 'podLog'>, clock: Clock): ReadLines {
  return async function* (ref, start, signal) {
    const sinceTime = 'sinceTime' in start ? start.sinceTime : undefined;
    for await (const lines of podLogLines(api, clock, ref, { sinceTime, follow: true, signal })) yield* lines;
  };
}

export type PodLine = { place: EventPlace } & (
  | { kind: 'event'; event: EventLine }
  | { kind: 'dropped'; events: number }
  | { kind: 'text'; text: string }
);

export interface PodLinesOptions {
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
  { namespace, from, sinceTime, signal }: PodLinesOptions,
): AsyncGenerator<PodLine> {
  let place = from;
  let since = from ? undefined : sinceTime;
  let lastPod: string | undefined;
  for await (const { podName, incarnation = 0 } of states) {
    // The pod's name is written before the pod is created, and the session changes again after that.
    if (!podName || podName === lastPod) continue;
    // Each pod numbers its events from 1. A place in none of the session's pods says nothing.
    if ((place || lastPod) && place?.incarnation !== incarnation) place = { incarnation, seq: 0 };
    /** True for lines that come before the place, and so were told. */
    let isBefore = (place?.seq ?? 0) > 0;
    const start = since === undefined ? { seq: place?.seq ?? 0 } : { sinceTime: since };
    for await (const { event, text } of read({ namespace, name: podName }, start, signal)) {
      [lastPod, since] = [podName, undefined];
      if (event) {
        const last = place?.seq ?? event.seq - 1;
        isBefore &&= event.seq < last;
        if (event.seq <= last) continue;
        const events = event.seq - last - 1;
        if (events > 0) yield { kind: 'dropped', events, place: { incarnation, seq: event.seq - 1 } };
        place = { incarnation, seq: event.seq };
        yield { kind: 'event', event, place };
      } else if (!isBefore) {
        yield { kind: 'text', text, place: place ?? { incarnation, seq: 0 } };
      }
    }
  }
}
