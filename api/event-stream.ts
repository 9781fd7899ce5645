import type { Placed } from '../core/follow/session-events.ts';
import type { Clock } from '../core/runtime.ts';

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
  try {
    let next = events.next();
    for (;;) {
      const first = await withinAlive(next, clock);
      if (first === undefined) yield ': alive\n\n';
      else if (first.done) return;
      else {
        yield formatEvent(first.value);
        next = events.next();
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await events.return?.().catch(() => undefined);
  }
}

export function formatEvent({ id, told }: Placed): string {
  return `id: ${id}\nevent: ${told.type}\ndata: ${JSON.stringify(told.data)}\n\n`;
}

/** Resolves to undefined when nothing has come for a while. */
async function withinAlive<T>(next: Promise<T>, clock: Clock): Promise<T | undefined> {
  let cancel = () => {};
  const alive = new Promise<undefined>((resolve) => {
    cancel = clock.setTimer(ALIVE_MS, () => resolve(undefined));
  });
  try {
    return await Promise.race([next, alive]);
  } finally {
    cancel();
  }
}
