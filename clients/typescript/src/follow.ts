import { backoffMs, wait } from './clock.ts';
import { ConnectionLost, NotBerth } from './errors.ts';
import type * as wire from './generated/wire.ts';
import type { Query } from './http.ts';
import { replaced } from './refusal.ts';
import type { Caller, Limits } from './retry.ts';
import { readEvents } from './sse.ts';

/** A server-sent event as the client gives it. */
type Given<Message> = Message extends { event: infer Type; data: infer Data }
  ? { type: Type; id: string; data: Data }
  : never;

/** An event of a session: `type` tells the shape of `data`; `id` is for a later `after`. A later release may send other types. */
export type SessionStreamEvent = Given<wire.SessionStreamEvent>;
/** An event of a namespace. */
export type NamespaceStreamEvent = Given<wire.NamespaceStreamEvent>;

export interface FollowOptions extends Limits {
  /** Id of an event: begins after it. `0.0.0.0` begins with everything that is kept. Default: the present state, and what follows. */
  after?: string | undefined;
  /** Time without any answer of the server after which the stream gives up, milliseconds. Default: the client's. */
  deadlineMs?: number | undefined;
}

interface Page {
  query?: Query;
  /** Is awaited when a stream has been opened, the first or a later one; its rejection ends everything. */
  opened?: (() => Promise<void>) | undefined;
}

/** Time that a stream has lived for its end to be no reason to wait longer before the next, milliseconds. */
const LIVED_MS = 10_000;

/**
 * Yields the events of a page. A stream that breaks or ends goes on after its last event by itself: also one that the server has closed while the
 * reader was busy. Rejects where the page is refused, and where no server has answered within the client's deadline.
 */
export async function* follow(
  caller: Caller,
  path: string,
  { after, signal, deadlineMs, query, opened }: FollowOptions & Page,
): AsyncGenerator<SessionStreamEvent, void, undefined> {
  const { clock, timing } = caller;
  let lastId = after;
  for (let short = 0; ; ) {
    const headers = { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
    const answer = await caller.open({ method: 'GET', path, query, headers, signal, deadlineMs });
    const start = clock.monotonic();
    try {
      if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
        throw new NotBerth(`GET ${path}: the answer is no stream of events`, { status: answer.status });
      }
      await opened?.();
      for await (const { id, type, data } of readEvents(answer.chunks())) {
        const event = { type, id, data: parsed(caller, path, data) } as SessionStreamEvent;
        if (id !== '') lastId = id;
        yield event;
      }
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    } finally {
      await answer.discard();
    }
    short = clock.monotonic() - start < LIVED_MS ? short + 1 : 1;
    await wait(clock, backoffMs(timing, short), signal);
  }
}

function parsed({ parse }: Caller, path: string, data: string): unknown {
  try {
    return parse(data);
  } catch (cause) {
    throw new NotBerth(`GET ${path}: the stream has an event that is no JSON`, { cause });
  }
}

/**
 * Yields the events of one session to the one of its deletion. Rejects with UIDMismatch where it was deleted unseen, and another session has come
 * under its name.
 */
export async function* followSession(
  caller: Caller,
  path: string,
  { uid, ...options }: FollowOptions & Page & { uid?: string | undefined },
): AsyncGenerator<SessionStreamEvent, void, undefined> {
  let own = uid;
  for await (const event of follow(caller, path, options)) {
    if (event.type === 'session') {
      own ??= event.data.uid;
      if (event.data.uid !== own) throw replaced('Session', event.data.session);
    }
    yield event;
    if (event.type === 'deleted' && event.data.turn === undefined) return;
  }
}
