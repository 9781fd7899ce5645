import { anySignal } from '../../core/abort.ts';
import { ifThere } from '../../core/kube/errors.ts';
import { watchOne } from '../../core/kube/watch-one.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import { type Session, type StoredSession, type StoredTurn, sessions } from '../../core/resources/kinds.ts';
import { firstTurnName } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { showSession, showTurn } from '../answers/present.ts';
import { outputJson } from '../answers/results.ts';
import { namespaceParams, run, runCreate, runQuery } from '../openapi/schemas.ts';
import { Problem, type ProblemCode } from '../problems/problems.ts';
import { checkClass, checkInput, checkInputGiven } from '../requests/checks.ts';
import { isSettled } from '../requests/decisions.ts';
import { createOnce } from '../requests/idempotency.ts';
import { type Call, type Route, route, type Services } from '../route.ts';
import { metaOf } from './sessions.ts';

export const runRoutes: Route[] = [
  route({
    method: 'POST',
    path: '/v1/namespaces/{namespace}/runs',
    operationId: 'createRun',
    summary: 'Run one input in a session of its own and wait for the result',
    description:
      'The run goes on when the time to wait is over, when it asks for an approval, or when the client goes away: repeat the request with the same Idempotency-Key, or follow Location. A run that failed is answered 200 as well: look at phase.',
    rights: [
      { verb: 'create', resource: 'sessions' },
      { verb: 'get', resource: 'sessions' },
      { verb: 'get', resource: 'turns' },
    ],
    params: namespaceParams,
    query: runQuery,
    body: runCreate,
    creates: true,
    codes: ['InputTooDeep', 'InputTooLarge', 'InputMissing', 'ClassNotFound', 'NotAllowed', 'StoredDataMissing'],
    responses: {
      200: { description: 'The run has ended.', schema: run, headers: ['Location'] },
      202: { description: 'The run goes on; Location is its turn.', schema: run, headers: ['Location'] },
    },
    holds: () => 'waits',
    async handle({ params: { namespace }, query, body, caller, key, memory, signal }, services) {
      checkInput(body.spec.input);
      const { object } = await createOnce<Session>({
        ...services,
        resource: sessions,
        namespace,
        scope: `${caller.username} runs`,
        key,
        body,
        prefix: 'run-',
        check: async () => checkInputGiven(body.spec.input, body.spec, await checkClass(services, body.spec)),
        build: (name) => ({
          metadata: { ...metaOf(body.metadata), name, namespace },
          spec: { ...body.spec, turns: 'One', suspend: false, requester: caller.username },
        }),
      });
      const turn = await endOf(object, parseDuration(query.wait), signal, services);
      return answer(object, turn, { memory, signal }, services);
    },
  }),
];

/** Returns the only turn of the session when it has ended or asks for an approval, or as it is when the time is over. */
function endOf(session: StoredSession, waitMs: number, signal: AbortSignal, { api, waits }: Services) {
  const { name, namespace, uid } = session.metadata;
  const isOurs = (turn: StoredTurn) => turn.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false;
  const isDone = (turn: StoredTurn) => isOurs(turn) && isSettled(api, turn, { signal });
  return waits
    .forTurn({ namespace, name: firstTurnName(name) }, isDone, waitMs, signal)
    .then((turn) => (turn && isOurs(turn) ? turn : undefined));
}

async function answer(
  created: StoredSession,
  turn: StoredTurn | undefined,
  reader: Pick<Call, 'memory' | 'signal'>,
  services: Services,
) {
  const { name, namespace } = created.metadata;
  const phase = turn?.status?.phase ?? 'Queued';
  const session = await sessionAfter(created, isTerminal(phase), reader.signal, services);
  const output = isTerminal(phase) && turn ? await outputOf(turn, reader, services) : undefined;
  return {
    status: isTerminal(phase) ? 200 : 202,
    headers: { location: `/v1/namespaces/${namespace}/sessions/${name}/turns/${firstTurnName(name)}` },
    body: withOutput(output, {
      session: showSession(session),
      ...(turn ? { turn: showTurn(turn) } : {}),
      phase,
      ...(turn?.status?.error ? { error: turn.status.error } : {}),
    }),
  };
}

/** The body with the output as it is stored: parsed it would take many times the memory. */
function withOutput(output: Buffer | undefined, body: object): object {
  if (output === undefined) return body;
  return Buffer.concat([Buffer.from(`${JSON.stringify(body).slice(0, -1)},"output":`), output, Buffer.from('}')]);
}

/** Milliseconds that the answer waits for the session to count its ended turn. */
const COUNTED_MS = 2_000;

/**
 * Returns the session, read after the turn so that it is not older. The controller counts an ended turn with a write of
 * its own, which is awaited for a while.
 */
async function sessionAfter(
  created: StoredSession,
  hasEnded: boolean,
  signal: AbortSignal,
  { api, clock }: Services,
): Promise<StoredSession> {
  const isCounted = ({ status }: StoredSession) => status?.lastTurn !== undefined;
  const { namespace, name } = created.metadata;
  // The signal is not passed, because a stop has aborted it.
  const read = api.get(sessions, { namespace, name });
  if (!hasEnded) return read;
  // A session may be deleted as soon as its run has ended; the result is known all the same.
  const found = await ifThere(read);
  if (!found || isCounted(found)) return found ?? created;
  let session = found;
  const timer = new AbortController();
  const cancelTimer = clock.setTimer(COUNTED_MS, () => timer.abort());
  try {
    const over = anySignal(signal, timer.signal);
    for await (const now of watchOne(api, sessions, { namespace, name }, { signal: over })) {
      if (now) session = now;
      if (!now || isCounted(now)) break;
    }
  } catch {
    // The run has its result, whatever is known of its session.
  } finally {
    cancelTimer();
  }
  return session;
}

/** Problems with an output that do not hide that the run has ended: status.outputRef is shown where there is one. */
const WITHOUT: readonly ProblemCode[] = ['NoOutput', 'CallerLimit', 'Overloaded'];

/** Returns undefined without an output, or when the server cannot hold it now. */
async function outputOf(turn: StoredTurn, reader: Pick<Call, 'memory' | 'signal'>, services: Services) {
  try {
    return await outputJson(turn, reader, services);
  } catch (error) {
    if (error instanceof Problem && WITHOUT.includes(error.code)) return undefined;
    throw error;
  }
}
