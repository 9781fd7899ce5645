import type { Placed } from '../../core/follow/session-events.ts';
import { TimedIterator } from '../../core/follow/timed-iterator.ts';
import type { Clock } from '../../core/runtime.ts';

/** Interval of keep-alive comments, which show proxies and clients that the connection works, milliseconds. */
const ALIVE_MS = 15_000;

/**
 * Formats events as server-sent events, with a comment now and then while there are none. Ends without an error when
 * the signal aborts.
 */
export async function* asEventStream(
  events: AsyncIterator<Placed>,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<string> {
  // The comment gives the client an answer before there is an event.
  yield ': berth\n\n';
  const timed = new TimedIterator(events, clock);
  try {
    for (;;) {
      const next = await timed.next(ALIVE_MS);
      if (next === undefined) yield ': alive\n\n';
      else if (next.done) return;
      else yield formatEvent(next.value);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await timed.return().catch(() => undefined);
  }
}

export function formatEvent({ id, event }: Placed): string {
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
