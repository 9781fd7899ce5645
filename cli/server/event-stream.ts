import type { StreamEvent } from '../../core/follow/events.ts';
import type { Placed } from '../../core/follow/session-events.ts';
import { parseExact } from '../../core/json.ts';
import { mayPass } from '../../core/kube/retry.ts';
import { delay } from '../../core/runtime.ts';
import type { Cli } from '../cli.ts';
import type { ServerClient } from './client.ts';
import { ServerUnreachable } from './errors.ts';

/** Silence after which a stream counts as lost: the server sends a comment every 15 s. Milliseconds. */
export const SILENCE_MS = 40_000;
const RETRY_MS = 500;
/** Limit of an event, bytes. */
const MAX_EVENT = 16 * 1024 * 1024;

/** Reads server-sent events as the HTTP API writes them: `id`, `event` and `data` of one line each. */
export async function* serverEvents(chunks: AsyncIterable<Buffer>): AsyncGenerator<Placed> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split('\n\n');
    rest = blocks.pop() as string;
    if (rest.length > MAX_EVENT) throw new ServerUnreachable(`an event is larger than ${MAX_EVENT} bytes`);
    for (const block of blocks) {
      const placed = eventOf(block);
      if (placed) yield placed;
    }
  }
}

function eventOf(block: string): Placed | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split('\n')) {
    const [, field = '', value = ''] = /^(\w+): ?(.*)$/s.exec(line) ?? [];
    if (field) fields.set(field, value);
  }
  const data = fields.get('data');
  if (data === undefined) return undefined;
  try {
    const event = { type: fields.get('event'), data: parseExact(data) } as StreamEvent;
    return { id: fields.get('id') ?? '', event };
  } catch (error) {
    throw new ServerUnreachable('the server sent an event that is no JSON', { cause: error });
  }
}

/**
 * Yields the events of a page until `isLast` holds for one or the signal aborts. A stream that is lost goes on after the last
 * event once the server answers again. Rejects where the first attempt is refused.
 */
export async function* followEvents(
  client: ServerClient,
  path: string,
  { logs = false, signal, isLast }: { logs?: boolean; signal: AbortSignal; isLast: (event: StreamEvent) => boolean },
  { clock }: Pick<Cli, 'clock'>,
): AsyncGenerator<Placed> {
  let lastId: string | undefined;
  let wasOpen = false;
  for (;;) {
    try {
      const headers = lastId === undefined ? {} : { 'last-event-id': lastId };
      const query = { logs: logs || undefined };
      const chunks = await client.stream(path, { headers, query, signal, idleTimeoutMs: SILENCE_MS });
      wasOpen = true;
      for await (const placed of serverEvents(chunks)) {
        lastId = placed.id;
        yield placed;
        if (isLast(placed.event)) return;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!wasOpen || !mayPass(error, wasOpen)) throw error;
    }
    await delay(clock, RETRY_MS, signal);
  }
}
