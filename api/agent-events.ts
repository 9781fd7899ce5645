/** Events of a session's agents, from the logs of its pods, one pod after the other. */
import { StringDecoder } from 'node:string_decoder';
import { ApiError } from '../core/kube/errors.ts';
import { follow } from '../core/kube/follow.ts';
import type { KubeApi } from '../core/kube/types.ts';
import { type EventLine, parseEventLine } from '../core/pod-log/agent-events.ts';
import { followPodLog } from '../core/pod-log/follow.ts';
import { type StoredSession, sessions } from '../core/resources/kinds.ts';
import { CONTAINER } from '../core/resources/names.ts';
import { type Clock, delay } from '../core/runtime.ts';

/** Interval of keep-alive comments, which show proxies and clients that the connection works, milliseconds. */
const ALIVE_MS = 15_000;
/** Limit of a line; a longer line is not an event. */
const MAX_LINE = 64 * 1024;

/** Position of an event in its session. */
export interface Place {
  incarnation: number;
  seq: number;
}

export interface PlacedEvent extends Place, Omit<EventLine, 'seq'> {}

export function parsePlace(text: string | undefined): Place | undefined {
  const [, incarnation, seq] = /^(\d{1,9})\.(\d{1,15})$/.exec(text ?? '') ?? [];
  return seq === undefined ? undefined : { incarnation: Number(incarnation), seq: Number(seq) };
}

const placeOf = ({ incarnation, seq }: Place): string => `${incarnation}.${seq}`;

/** Returns the position of the last event so far; later events are new. */
export async function lastPlace(
  api: Pick<KubeApi, 'podLog'>,
  { metadata, status = {} }: StoredSession,
  signal: AbortSignal,
): Promise<Place> {
  const { podName, incarnation = 0 } = status;
  const last = { incarnation, seq: 0 };
  if (!podName) return last;
  const ref = { namespace: metadata.namespace, name: podName };
  try {
    for await (const { seq } of eventsIn(api.podLog(ref, { container: CONTAINER, signal }))) last.seq = seq;
  } catch (error) {
    // The pod has just started, or is gone.
    if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 404)) throw error;
  }
  return last;
}

/**
 * Yields every event after `last` until the session is deleted or the signal aborts. Events that are no longer in the
 * log, because it was rotated or its pod is gone, are left out.
 */
export async function* agentEvents(
  api: Pick<KubeApi, 'list' | 'watch' | 'podLog'>,
  clock: Clock,
  session: { namespace: string; name: string; uid: string },
  last: Place,
  signal: AbortSignal,
): AsyncGenerator<PlacedEvent> {
  let { incarnation, seq } = last;
  for await (const now of follow(api, sessions, session, { clock, signal })) {
    if (now?.metadata.uid !== session.uid) return;
    const { podName, incarnation: present = 0 } = now.status ?? {};
    // The pod's name is written before the pod is created, and the session changes again after that.
    if (!podName || present < incarnation) continue;
    if (present > incarnation) [incarnation, seq] = [present, 0];
    const ref = { namespace: session.namespace, name: podName };
    for await (const event of eventsIn(followPodLog(api, clock, ref, { signal }))) {
      if (event.seq <= seq) continue;
      seq = event.seq;
      yield { ...event, incarnation };
    }
  }
}

async function* eventsIn(log: AsyncIterable<Buffer>): AsyncGenerator<EventLine> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of log) {
    const lines = (rest + decoder.write(chunk)).split('\n');
    // The beginning of an unfinished line is enough to tell whether it is an event.
    rest = (lines.pop() as string).slice(0, MAX_LINE);
    for (const line of lines) {
      const event = parseEventLine(line);
      if (event) yield event;
    }
  }
}

/**
 * Formats events as server-sent events, with a comment now and then while there are none. Ends without an error when
 * the signal aborts.
 */
export async function* asEventStream(
  events: AsyncIterator<PlacedEvent>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<string> {
  // The comment gives the client an answer before there is an event.
  yield ': berth\n\n';
  try {
    let next = events.next();
    while (!signal.aborted) {
      const timer = new AbortController();
      const alive = delay(clock, ALIVE_MS, AbortSignal.any([signal, timer.signal])).catch(() => undefined);
      const first = await Promise.race([next, alive]);
      timer.abort();
      if (first === undefined) yield ': alive\n\n';
      else if (first.done) return;
      else {
        const { turn, at, event } = first.value;
        yield `id: ${placeOf(first.value)}\nevent: agent\ndata: ${JSON.stringify({ turn, at, event })}\n\n`;
        next = events.next();
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await events.return?.().catch(() => undefined);
  }
}
