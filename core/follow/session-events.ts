import { anySignal } from '../abort.ts';
import type { Clock } from '../runtime.ts';
import {
  formatSessionCursor,
  formatStateCursor,
  type SessionCursor,
  type StateCursor,
  sessionOfUid,
} from './cursor.ts';
import type { StreamEvent } from './events.ts';
import { merged } from './merged.ts';
import { type PodLine, podLines, type ReadLines, SKEW_MS } from './pod-lines.ts';
import { sessionEvent, turnEvents } from './state-events.ts';
import type { PlacedChange, States } from './states.ts';
import type { SessionView, TurnView } from './views.ts';

/** An event, and the place from which a stream goes on after it. */
export interface Placed {
  id: string;
  event: StreamEvent;
}

/** The place before everything that is kept. */
const BEGINNING: SessionCursor = { states: { sessions: '0', turns: '0' }, place: { incarnation: 0, seq: 0 } };

export interface SessionEventsOptions {
  namespace: string;
  name: string;
  /** UID of the session: the stream ends when that one is deleted. */
  uid: string;
  /** The resourceVersion with which the session was read; default: not known. */
  resourceVersion?: string | undefined;
  /** Place after which the stream goes on. Default: the present states, then what happens. */
  from?: SessionCursor | undefined;
  /** True to send printed lines, too. */
  logs: boolean;
  signal: AbortSignal;
}

/** Yields everything that happens to a session until it is deleted or the signal aborts. */
export async function* sessionEvents(
  { clock, states, read }: { clock: Clock; states: States; read: ReadLines },
  { namespace, name, uid, resourceVersion, from, logs, signal }: SessionEventsOptions,
): AsyncGenerator<Placed> {
  const view = await states.find(name, uid, resourceVersion, signal);
  const session = sessionOfUid(uid);
  const start = from && (await startOf(from, session, states, signal));
  let cursor = start?.states ?? BEGINNING.states;
  let place = start?.place ?? { incarnation: view?.incarnation ?? 0, seq: 0 };
  const deleted: StreamEvent = { type: 'deleted', data: { session: name, uid } };
  // The session that gets the name next is sent from its beginning.
  const after = () => formatSessionCursor({ states: cursor, place: BEGINNING.place });
  if (!view) return yield { id: after(), event: deleted };

  const stop = new AbortController();
  const ended = anySignal(signal, stop.signal);
  const givenAt = states.runningTurn(name)?.givenAt;
  const lines = podLines(read, statesOf(states, name, uid, ended), {
    clock,
    namespace,
    from: start?.place,
    sinceTime: givenAt ?? new Date(clock.now() - SKEW_MS).toISOString(),
    signal: ended,
  });
  const changes = states.changes({ session: name, from: start?.states, signal: ended });
  const turns = new SentTurns();
  try {
    for await (const item of merged<PlacedChange | PodLine>([changes, lines])) {
      if ('place' in item) {
        const event = lineEvent(item, name);
        if (event.type === 'log' && !logs) continue;
        place = item.place;
        yield { id: formatSessionCursor({ states: cursor, place, session }), event };
      } else {
        const { change } = item;
        const isOurs = change.kind === 'turn' || change.view.metadata.uid === uid;
        const events = isOurs ? turns.events(item) : [];
        const isEnd = isOurs && change.kind === 'session' && change.isDeleted;
        // The last event of a change has its place: who has read only those before it gets them again.
        for (const [i, event] of events.entries()) {
          if (i === events.length - 1) cursor = item.cursor;
          yield { id: isEnd ? after() : formatSessionCursor({ states: cursor, place, session }), event };
        }
        cursor = item.cursor;
        if (isEnd) return;
      }
    }
  } finally {
    stop.abort(new Error('the stream has ended'));
  }
}

/**
 * The place from which a stream goes on. A place of another server says nothing of this session's pods, and one of another
 * session that had the name nothing of how far this one's are known.
 */
async function startOf(
  from: SessionCursor,
  session: string,
  states: States,
  signal: AbortSignal,
): Promise<SessionCursor> {
  if (!(await states.hasReached(from.states, signal))) return BEGINNING;
  return from.session === undefined || from.session === session ? from : { ...from, place: BEGINNING.place };
}

/** Yields everything that happens to the sessions and turns of a namespace, until the signal aborts. */
export async function* namespaceEvents(
  states: States,
  { from, signal }: { from?: StateCursor | undefined; signal: AbortSignal },
): AsyncGenerator<Placed> {
  const turns = new SentTurns();
  let cursor = from ?? { sessions: '0', turns: '0' };
  for await (const item of states.changes({ from, signal })) {
    const events = turns.events(item);
    for (const [i, event] of events.entries()) {
      if (i === events.length - 1) cursor = item.cursor;
      yield { id: formatStateCursor(cursor), event };
    }
    cursor = item.cursor;
  }
}

async function* statesOf(
  states: States,
  session: string,
  uid: string,
  signal: AbortSignal,
): AsyncGenerator<SessionView> {
  for await (const { change } of states.changes({ session, signal })) {
    if (change.kind === 'session' && change.view.metadata.uid === uid && !change.isDeleted) yield change.view;
  }
}

/** The states of turns that a follower was sent. */
class SentTurns {
  readonly #sent = new Map<string, TurnView>();

  events({ change }: PlacedChange): StreamEvent[] {
    const { view, isDeleted } = change;
    const { uid, name } = view.metadata;
    if (change.kind === 'session') {
      return [isDeleted ? { type: 'deleted', data: { session: name, uid } } : sessionEvent(change.view)];
    }
    const { session } = change.view;
    if (isDeleted) {
      this.#sent.delete(uid);
      return [{ type: 'deleted', data: { session, turn: name, uid } }];
    }
    const events = turnEvents(change.view, this.#sent.get(uid));
    this.#sent.set(uid, change.view);
    return events;
  }
}

function lineEvent(line: PodLine, session: string): StreamEvent {
  if (line.kind === 'text') return { type: 'log', data: { session, text: line.text } };
  if (line.kind === 'dropped') return { type: 'dropped', data: { session, events: line.events } };
  const { turn, at, event } = line.event;
  return { type: 'agent', data: { session, turn, at, event } };
}
