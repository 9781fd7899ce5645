import { turnName } from '../../core/generated-name.ts';
import { parseDuration } from '../../core/resources/duration.ts';
import {
  ownedBy,
  type StoredSession,
  type StoredTurn,
  sessionOwner,
  sessions,
  type Turn,
  turns,
} from '../../core/resources/kinds.ts';
import { isTerminal, TURN_PHASES } from '../../core/resources/turn-phases.ts';
import { inPhases, listPage, pageBody } from '../answers/list-page.ts';
import { listedTurn, showTurn } from '../answers/present.ts';
import { logText, outputJson } from '../answers/results.ts';
import {
  allTurnsQuery,
  namespaceParams,
  noBody,
  noQuery,
  sessionParams,
  sessionUidQuery,
  turn,
  turnCreate,
  turnList,
  turnListQuery,
  turnParams,
  turnUidQuery,
  waitQuery,
} from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { checkInput, checkTakesTurns, checkTurn } from '../requests/checks.ts';
import { isSettled } from '../requests/decisions.ts';
import { createOnce } from '../requests/idempotency.ts';
import { onlyIf, refuseOther } from '../requests/precondition.ts';
import { type Route, route, type Services } from '../route.ts';
import { metaOf } from './sessions.ts';

const ALL = '/v1/namespaces/{namespace}/turns';
const PATH = '/v1/namespaces/{namespace}/sessions/{session}/turns';
const ONE = `${PATH}/{turn}`;

export const turnRoutes: Route[] = [
  route({
    method: 'POST',
    path: PATH,
    operationId: 'createTurn',
    summary: 'Give a session a turn',
    description: 'It runs after those given before it, and wakes the session where that is suspended.',
    rights: [{ verb: 'create', resource: 'turns' }],
    params: sessionParams,
    query: sessionUidQuery,
    body: turnCreate,
    creates: true,
    codes: ['InputTooDeep', 'InputTooLarge', 'InputMissing', 'NotAllowed', 'SessionTerminating', 'SessionTakesOneTurn'],
    responses: {
      201: { description: 'Created.', schema: turn, headers: ['Location'] },
      200: {
        description: 'Created by an earlier request with this Idempotency-Key.',
        schema: turn,
        headers: ['Location'],
      },
    },
    async handle({ params, query, body, caller, key }, services) {
      const { namespace, session: name } = params;
      checkInput(body.spec.input ?? null);
      const session = await services.api.get(sessions, { namespace, name });
      refuseOther(session, query.uid, sessions);
      const { object, created } = await createOnce<Turn>({
        ...services,
        resource: turns,
        namespace,
        scope: `${caller.username} ${session.metadata.uid}`,
        key,
        body,
        prefix: `${name}-`,
        newName: () => turnName(name, services),
        check: async () => {
          checkTakesTurns(session);
          await checkTurn(services, body.spec, session);
        },
        build: (turnName) => ({
          metadata: { ...metaOf(body.metadata), name: turnName, namespace, ownerReferences: [ownedBy(session)] },
          spec: { ...body.spec, session: name, cancel: false, requester: caller.username },
        }),
      });
      const location = `${PATH.replace('{namespace}', namespace).replace('{session}', name)}/${object.metadata.name}`;
      return { status: created ? 201 : 200, body: showTurn(object), headers: { location } };
    },
  }),
  route({
    method: 'GET',
    path: PATH,
    operationId: 'listTurns',
    summary: 'List the turns of a session',
    rights: [{ verb: 'list', resource: 'turns' }],
    params: sessionParams,
    query: turnListQuery,
    responses: { 200: { description: 'A page of turns.', schema: turnList } },
    async handle({ params: { namespace, session: name }, query, memory, signal }, { api }) {
      const session = await api.get(sessions, { namespace, name }, { signal });
      const fields = [`spec.session=${name}`, ...inPhases(query.phase, TURN_PHASES)];
      const { items, metadata } = await listPage(api, turns, query, { namespace, fields, memory, signal });
      const own = items.filter((item) => belongsTo(item, session)).map((item) => listedTurn(item, query.specs));
      return { status: 200, body: pageBody(own, metadata) };
    },
  }),
  route({
    method: 'GET',
    path: ALL,
    operationId: 'listAllTurns',
    summary: 'List the turns of all sessions of a namespace',
    description: 'With name, the session of a turn whose name alone is known stands in its spec.session.',
    rights: [{ verb: 'list', resource: 'turns' }],
    params: namespaceParams,
    query: allTurnsQuery,
    responses: { 200: { description: 'A page of turns.', schema: turnList } },
    async handle({ params: { namespace }, query, memory, signal }, { api }) {
      const { name, phase, specs } = query;
      const only = name === undefined ? [] : [`metadata.name=${name}`];
      const fields = [...only, ...inPhases(phase, TURN_PHASES)];
      const { items, metadata } = await listPage(api, turns, query, { namespace, fields, memory, signal });
      const shown = items.map((item) => listedTurn(item, specs));
      return { status: 200, body: pageBody(shown, metadata) };
    },
  }),
  route({
    method: 'GET',
    path: ONE,
    operationId: 'getTurn',
    summary: 'Look at a turn, or wait for its end',
    description:
      'With wait the answer comes when the turn has ended, asks for an approval on which nobody has decided, or the time is over, whichever is first: look at status.phase. A client that goes away changes nothing.',
    rights: [{ verb: 'get', resource: 'turns', nameParam: 'turn' }],
    params: turnParams,
    query: waitQuery,
    responses: { 200: { description: 'The turn.', schema: turn } },
    holds: ({ query }) => (query.wait === undefined ? undefined : 'waits'),
    async handle({ params, query, signal }, services) {
      const found = await turnOf(services, params, signal);
      const { namespace, turn: name } = params;
      const isDone = (one: StoredTurn) => isSettled(services.api, one, { known: query.requestId, signal });
      if (query.wait === undefined || (await isDone(found))) return { status: 200, body: showTurn(found) };
      const last = await services.waits.forTurn(
        { namespace, name, known: found },
        isDone,
        parseDuration(query.wait),
        signal,
      );
      if (last?.metadata.uid !== found.metadata.uid) throw new Problem('NotFound', `Turn "${name}" was deleted.`);
      return { status: 200, body: showTurn(last) };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/output`,
    operationId: 'getOutput',
    summary: 'The output of a turn, whole',
    description: 'Also one that is too large for the Turn.',
    rights: [{ verb: 'get', resource: 'turns', nameParam: 'turn' }],
    params: turnParams,
    query: noQuery,
    codes: ['NoOutput', 'TurnNotFinished', 'StoredDataMissing'],
    responses: { 200: { description: 'The output as JSON.' } },
    holds: () => 'contents',
    async handle({ params, memory, signal }, services) {
      const found = await turnOf(services, params, signal);
      const body = await outputJson(found, { memory, signal }, services);
      return { status: 200, body, headers: { 'content-type': 'application/json; charset=utf-8' } };
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/log`,
    operationId: 'getLog',
    summary: 'What the agent printed beside its result',
    description: 'After redaction, the last 1 MiB.',
    rights: [{ verb: 'get', resource: 'turns', nameParam: 'turn' }],
    params: turnParams,
    query: noQuery,
    codes: ['NoLog', 'TurnNotFinished', 'StoredDataMissing'],
    responses: { 200: { description: 'The text.', schema: 'Text' } },
    holds: () => 'contents',
    async handle({ params, memory, signal }, services) {
      const found = await turnOf(services, params, signal);
      const body = await logText(found, { memory, signal }, services);
      return { status: 200, body, headers: { 'content-type': 'text/plain; charset=utf-8' } };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/cancel`,
    operationId: 'cancelTurn',
    summary: 'Cancel a turn, queued or running',
    description: 'One that has ended stays as it ended.',
    rights: [{ verb: 'patch', resource: 'turns', nameParam: 'turn' }],
    params: turnParams,
    query: turnUidQuery,
    body: noBody,
    responses: { 202: { description: 'The turn will be cancelled, or has ended already.', schema: turn } },
    async handle({ params, query, signal }, services) {
      const { namespace, turn: name } = params;
      const found = await turnOf(services, params, signal);
      refuseOther(found, query.uid, turns);
      if (isTerminal(found.status?.phase)) return { status: 202, body: showTurn(found) };
      // The uid keeps the patch from another turn created under the same name.
      const { uid } = found.metadata;
      const patched = services.api.patch(turns, { namespace, name }, { metadata: { uid }, spec: { cancel: true } });
      return { status: 202, body: showTurn(await onlyIf(uid, patched, services.api, turns, { namespace, name })) };
    },
  }),
];

/** Returns a turn of this session. Rejects with a Problem if the turn belongs to another session. */
export async function turnOf(
  { api }: Services,
  params: { namespace: string; session: string; turn: string },
  signal: AbortSignal,
): Promise<StoredTurn> {
  const { namespace, session, turn: name } = params;
  const found = await api.get(turns, { namespace, name }, { signal });
  if (found.spec.session === session) return found;
  throw new Problem('NotFound', `Session "${session}" has no turn "${name}".`);
}

/** Reports false for a turn that an earlier session of the same name left behind. */
function belongsTo({ metadata }: StoredTurn, session: StoredSession): boolean {
  const owner = sessionOwner(metadata);
  return owner === undefined || owner.uid === session.metadata.uid;
}
