/** Agent events and printed lines of a session, from the logs of its pods, one pod after the other. */
import type { KubeApi } from '../kube/types.ts';
import { type EventLine, parseEventLine } from '../pod-log/agent-events.ts';
import { followPodLog } from '../pod-log/follow.ts';
import { readable } from '../pod-log/session-text.ts';
import type { Clock } from '../runtime.ts';
import type { EventPlace } from './cursor.ts';
import type { SessionView } from './views.ts';

/** Length of a piece of a line, characters; a longer line comes in several. */
const MAX_PIECE = 64 * 1024;

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
  api: Pick<KubeApi, 'podLog'>,
  clock: Clock,
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
    const log = followPodLog(api, clock, { namespace, name: podName }, { sinceTime: since, signal });
    for await (const line of linesOf(readable(log))) {
      [lastPod, since] = [podName, undefined];
      const event = parseEventLine(line);
      if (event) {
        const last = place?.seq ?? event.seq - 1;
        isBefore &&= event.seq < last;
        if (event.seq <= last) continue;
        const events = event.seq - last - 1;
        if (events > 0) yield { kind: 'dropped', events, place: { incarnation, seq: event.seq - 1 } };
        place = { incarnation, seq: event.seq };
        yield { kind: 'event', event, place };
      } else if (!isBefore) {
        yield { kind: 'text', text: line, place: place ?? { incarnation, seq: 0 } };
      }
    }
  }
}

async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of text) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() as string;
    yield* lines;
    for (; rest.length > MAX_PIECE; rest = rest.slice(MAX_PIECE)) yield rest.slice(0, MAX_PIECE);
  }
  if (rest) yield rest;
}
