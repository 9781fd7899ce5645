import { backoffMs, wait } from './clock.ts';
import { BerthError, ConnectionLost, NotBerth } from './errors.ts';
import type * as wire from './generated/wire.ts';
import type { Answer, Query } from './http.ts';
import { replaced } from './refusal.ts';
import type { Call, Caller, Limits } from './retry.ts';
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
  /** Reports whether a refusal after the first stream may pass, so that the page is asked for again. Default: none does. */
  passes?: ((refusal: BerthError) => boolean) | undefined;
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
  { after, signal, deadlineMs, query, opened, passes }: FollowOptions & Page,
): AsyncGenerator<SessionStreamEvent, void, undefined> {
  const { clock, timing } = caller;
  let lastId = after;
  let wasOpen = false;
  for (let short = 0; ; ) {
    let stream: Answer | undefined;
    try {
      stream = await openStream(caller, path, { after: lastId, query, signal, deadlineMs });
      wasOpen = true;
    } catch (error) {
      if (!(wasOpen && error instanceof BerthError && passes?.(error))) throw error;
    }
    const start = clock.monotonic();
    try {
      if (stream) {
        await opened?.();
        for await (const event of eventsIn(caller, path, stream)) {
          if (event.id !== '') lastId = event.id;
          yield event;
        }
      }
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    } finally {
      await stream?.discard();
    }
    short = clock.monotonic() - start < LIVED_MS ? short + 1 : 1;
    await wait(clock, backoffMs(timing, short), signal);
  }
}

/** Opens one stream of a page. Its reader discards it. */
export async function openStream(
  caller: Caller,
  path: string,
  { after, ...call }: Pick<Call, 'query' | 'signal' | 'deadlineMs' | 'retry'> & { after?: string | undefined },
): Promise<Answer> {
  const headers = { accept: 'text/event-stream', ...(after === undefined ? {} : { 'last-event-id': after }) };
  const answer = await caller.open({ ...call, method: 'GET', path, headers });
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
  await answer.discard();
  throw new NotBerth(`GET ${path}: the answer is no stream of events`, { status: answer.status });
}

/** Yields the events of one stream, to its end. Throws a ConnectionLost where it breaks. */
export async function* eventsIn(
  caller: Caller,
  path: string,
  stream: Answer,
): AsyncGenerator<SessionStreamEvent, void, undefined> {
  for await (const { id, type, data } of readEvents(stream.chunks())) {
    yield { type, id, data: parsed(caller, path, data) } as SessionStreamEvent;
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
