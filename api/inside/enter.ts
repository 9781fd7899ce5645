/** Connections into the pods of sessions, for callers of the API. */
import { enterSession, type FrameStream } from '../../core/enter/client.ts';
import type { Wish } from '../../core/enter/hello.ts';
import { ApiError } from '../../core/kube/errors.ts';
import { type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { toProblem } from '../problems/errors.ts';
import { Problem } from '../problems/problems.ts';
import { refuseOther } from '../requests/precondition.ts';
import type { Call, Services } from '../route.ts';

/** A call about a session. */
export type SessionCall = Call<
  { namespace: string; session: string },
  { uid?: string | undefined; incarnation?: number | undefined }
>;

/** Notes how a connection of a caller went: one line, without what was said over it. */
export interface Trace {
  /** Counts bytes of content. */
  add(bytes: number): void;
  /** Logs the line, the first time that it is called. */
  end(error?: unknown): void;
}

export interface EnterOptions {
  /** Rejects where this session may not be entered. */
  check?: (session: StoredSession) => Promise<void>;
  /** Facts for the log's line, in place of those that the wish has. */
  about?: { port: number };
}

/**
 * Opens a connection to the session's present pod. Rejects as `enterSession` does, or with a Problem. The trace ends with a
 * rejection; after that the caller of this function ends it.
 */
export async function enter(
  call: SessionCall,
  services: Pick<Services, 'api' | 'clock' | 'log'>,
  wish: Wish,
  { check, about }: EnterOptions = {},
): Promise<{ frames: FrameStream; trace: Trace }> {
  const { api, clock } = services;
  const { params, query, signal } = call;
  const trace = traceOf(call, services, wish, about);
  try {
    const session = await api.get(sessions, { namespace: params.namespace, name: params.session }, { signal });
    refuseOther(session, query.uid, sessions);
    refuseOtherPod(session, query.incarnation);
    await check?.(session);
    return { frames: await enterSession(api, session, wish, { clock, signal }).catch(notAllowed), trace };
  } catch (error) {
    trace.end(error);
    throw error;
  }
}

/** Throws where the session has got another pod than the one that the client means. */
function refuseOtherPod({ metadata, status }: StoredSession, incarnation: number | undefined): void {
  const present = status?.incarnation;
  if (incarnation === undefined || present === undefined || present === incarnation) return;
  throw new Problem(
    'PodReplaced',
    `Session "${metadata.name}" is in its incarnation ${present}: the pod of incarnation ${incarnation} is gone.`,
  );
}

/** Resolves or rejects as `use` does, and ends the trace with that outcome. */
export async function tracing<R>(trace: Trace, use: () => Promise<R>): Promise<R> {
  try {
    const result = await use();
    trace.end();
    return result;
  } catch (error) {
    trace.end(error);
    throw error;
  }
}

/** Yields the content of a connection and counts it. Its end, or the client's leaving, ends the connection and the trace. */
export async function* traced(
  content: AsyncIterable<Buffer>,
  frames: FrameStream,
  trace: Trace,
): AsyncGenerator<Buffer> {
  let outcome: unknown = new Error('the client has gone');
  try {
    for await (const piece of content) {
      trace.add(piece.length);
      yield piece;
    }
    outcome = undefined;
  } catch (error) {
    outcome = error;
    throw error;
  } finally {
    frames.close();
    trace.end(outcome);
  }
}

/** The cluster refuses the API's own account where the installation does not let it in. */
function notAllowed(error: unknown): never {
  if (error instanceof ApiError && error.code === 403) {
    const text = `This installation lets the API into no session: ${error.message}. The chart's api.enter.enabled allows it.`;
    throw new Problem('EnterDisabled', text);
  }
  throw error;
}

function traceOf(
  { caller, params, requestId, signal }: SessionCall,
  { log }: Pick<Services, 'log'>,
  wish: Wish,
  asked?: { port: number },
): Trace {
  const { namespace, session } = params;
  const about = asked ?? ('root' in wish ? { root: wish.root } : 'id' in wish ? { command: wish.id } : {});
  const facts = { user: caller.username, namespace, session, want: wish.want, ...about, requestId };
  let total = 0;
  let isOver = false;
  return {
    add: (bytes) => {
      total += bytes;
    },
    end: (error) => {
      if (isOver) return;
      isOver = true;
      const outcome = error === undefined ? 'Done' : signal.aborted ? 'Left' : toProblem(error).code;
      log.info({ ...facts, outcome, bytes: total }, 'session entered');
    },
  };
}
