import { defined } from '../../core/defined.ts';
import { canonicalJson } from '../../core/json.ts';
import { type Session, type StoredSession, sessions } from '../../core/resources/kinds.ts';
import { ANNOTATION_TOUCHED_AT } from '../../core/resources/names.ts';
import { sessionPhase } from '../../core/resources/session.ts';
import type { Random } from '../../core/runtime.ts';
import { inPhases, listPage, pageBody } from '../answers/list-page.ts';
import { listedSession, showSession } from '../answers/present.ts';
import type { Caller } from '../auth/access.ts';
import {
  namespaceParams,
  noBody,
  noQuery,
  session,
  sessionCreate,
  sessionList,
  sessionListQuery,
  sessionParams,
  sessionUidQuery,
  suspendBody,
} from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { checkClass, checkInput } from '../requests/checks.ts';
import { createOnce, hash } from '../requests/idempotency.ts';
import { onlyIf, refuseOther } from '../requests/precondition.ts';
import { type Call, type Route, route, type Services } from '../route.ts';

const PATH = '/v1/namespaces/{namespace}/sessions';
const ONE = `${PATH}/{session}`;

export const sessionRoutes: Route[] = [
  route({
    method: 'POST',
    path: PATH,
    operationId: 'createSession',
    summary: 'Create a session',
    rights: [{ verb: 'create', resource: 'sessions' }],
    params: namespaceParams,
    query: noQuery,
    body: sessionCreate,
    creates: true,
    codes: ['InputTooDeep', 'InputTooLarge', 'ClassNotFound', 'NotAllowed'],
    responses: {
      201: { description: 'Created.', schema: session, headers: ['Location'] },
      200: {
        description: 'Created by an earlier request with this Idempotency-Key.',
        schema: session,
        headers: ['Location'],
      },
    },
    async handle({ params: { namespace }, body, caller, key }, services) {
      checkInput(body.spec.input ?? null);
      const { metadata, spec } = body;
      const { object, created } = await createOnce<Session>({
        ...services,
        resource: sessions,
        namespace,
        scope: scopeOf(caller),
        key,
        body,
        prefix: 's-',
        check: async () => void (await checkClass(services, spec)),
        build: (name) => ({
          metadata: { ...metaOf(metadata), name, namespace },
          spec: { ...spec, requester: caller.username },
        }),
      });
      const location = ONE.replace('{namespace}', namespace).replace('{session}', object.metadata.name);
      return { status: created ? 201 : 200, body: showSession(object), headers: { location } };
    },
  }),
  route({
    method: 'GET',
    path: PATH,
    operationId: 'listSessions',
    summary: 'List sessions',
    rights: [{ verb: 'list', resource: 'sessions' }],
    params: namespaceParams,
    query: sessionListQuery,
    responses: { 200: { description: 'A page of sessions.', schema: sessionList } },
    async handle({ params: { namespace }, query, memory, signal }, { api }) {
      const { parent, phase, specs } = query;
      const made = parent === undefined ? [] : [`spec.parent.name=${parent}`];
      const fields = [...made, ...inPhases(phase, sessionPhase.options)];
      const { items, metadata } = await listPage(api, sessions, query, { namespace, fields, memory, signal });
      const shown = items.map((item) => listedSession(item, specs));
      return { status: 200, body: pageBody(shown, metadata) };
    },
  }),
  route({
    method: 'GET',
    path: ONE,
    operationId: 'getSession',
    summary: 'Look at a session',
    description: 'Looking never wakes a session.',
    rights: [{ verb: 'get', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: noQuery,
    responses: { 200: { description: 'The session.', schema: session } },
    async handle({ params, signal }, { api }) {
      const { namespace, session: name } = params;
      return { status: 200, body: showSession(await api.get(sessions, { namespace, name }, { signal })) };
    },
  }),
  route({
    method: 'DELETE',
    path: ONE,
    operationId: 'deleteSession',
    summary: 'Delete a session',
    description: 'Its pod, turns, state and logs go with it.',
    rights: [{ verb: 'delete', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: sessionUidQuery,
    responses: { 204: { description: 'Deleted, or being deleted.' } },
    async handle({ params: { namespace, session: name }, query: { uid } }, { api }) {
      const ref = { namespace, name };
      const precondition = uid === undefined ? {} : { uid };
      const deleted = api.delete(sessions, ref, { propagationPolicy: 'Background', ...precondition });
      await onlyIf(uid, deleted, api, sessions, ref);
      return { status: 204 };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/suspend`,
    operationId: 'suspendSession',
    summary: 'Suspend a session',
    description:
      'After the turns given so far the state is stored and the pod is given up. A later turn wakes the session, unless it is on hold.',
    rights: [{ verb: 'patch', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: sessionUidQuery,
    body: suspendBody,
    creates: true,
    codes: ['SessionFinished'],
    responses: { 202: { description: 'The session will be suspended.', schema: session } },
    async handle(call, services) {
      const { body, caller, key } = call;
      const session = await read(call, services);
      const id = requestId(caller, key, services.random);
      const spec = body.hold ? { suspend: true } : { suspendRequest: id };
      // A repeat of a request that came in time is answered as the first was.
      if (body.hold || session.spec.suspendRequest !== id) refuseFinished(session);
      return { status: 202, body: await patched(call, { spec }, services) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/restart`,
    operationId: 'restartSession',
    summary: 'Replace the pod of a session',
    description:
      'The running turn ends, then the state is stored and the pod is given up. The next turn, or one that waits, starts a new pod with the present settings of session and class.',
    rights: [{ verb: 'patch', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: sessionUidQuery,
    body: noBody,
    creates: true,
    codes: ['SessionFinished'],
    responses: { 202: { description: 'The pod will be replaced.', schema: session } },
    async handle(call, services) {
      const session = await read(call, services);
      const spec = { restartRequest: requestId(call.caller, call.key, services.random) };
      if (session.spec.restartRequest !== spec.restartRequest) refuseFinished(session);
      return { status: 202, body: await patched(call, { spec }, services) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/resume`,
    operationId: 'resumeSession',
    summary: 'Take back a suspension or hold',
    description: 'Starts no pod by itself: the next turn does, or one that was held.',
    rights: [{ verb: 'patch', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: sessionUidQuery,
    body: noBody,
    responses: { 200: { description: 'The session takes turns.', schema: session } },
    async handle(call, services) {
      return { status: 200, body: await patched(call, { spec: { suspend: false, suspendRequest: null } }, services) };
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/touch`,
    operationId: 'touchSession',
    summary: 'Say that a session is in use',
    description:
      'It counts as activity: timeouts.idle begins anew, and a suspension for want of activity is undone. It wakes no session.',
    rights: [{ verb: 'patch', resource: 'sessions', nameParam: 'session' }],
    params: sessionParams,
    query: sessionUidQuery,
    body: noBody,
    responses: { 200: { description: 'The session counts as active now.', schema: session } },
    async handle(call, services) {
      const annotations = { [ANNOTATION_TOUCHED_AT]: new Date(services.clock.now()).toISOString() };
      return { status: 200, body: await patched(call, { annotations }, services) };
    },
  }),
];

/** A request for one session, which may name the session's UID. */
type OfSession = Pick<
  Call<{ namespace: string; session: string }, { uid?: string | undefined }>,
  'params' | 'query' | 'signal'
>;

async function read({ params, query: { uid }, signal }: OfSession, { api }: Services): Promise<StoredSession> {
  const { namespace, session: name } = params;
  const session = await api.get(sessions, { namespace, name }, { signal });
  refuseOther(session, uid, sessions);
  return session;
}

/** Patches the session, if it has the UID that the request names, and returns it as the API shows it. */
async function patched(
  { params, query: { uid } }: OfSession,
  { annotations, spec }: { annotations?: object; spec?: object },
  { api }: Services,
): Promise<object> {
  const { namespace, session: name } = params;
  const ref = { namespace, name };
  // The API server takes the UID in a patch as a precondition.
  const metadata = { ...(annotations ? { annotations } : {}), ...defined({ uid }) };
  const patch = api.patch(sessions, ref, { metadata, ...(spec ? { spec } : {}) });
  return showSession(await onlyIf(uid, patch, api, sessions, ref));
}

/**
 * Returns an id of the length that spec.suspendRequest and spec.restartRequest allow: a new one, or one derived from user
 * and key. Keys of different users are different keys.
 */
function requestId({ username }: Pick<Caller, 'username'>, key: string | undefined, random: Random): string {
  return key === undefined ? random.bytes(8).toString('hex') : `key-${hash(canonicalJson([username, key]))}`;
}

/** Returns the scope of the keys with which a user creates sessions: none of another user's runs, `USER runs`. */
function scopeOf({ username }: Pick<Caller, 'username'>): string | string[] {
  return username.endsWith(' runs') ? [username] : username;
}

function refuseFinished({ metadata: { name }, status }: StoredSession): void {
  if (status?.phase !== 'Finished') return;
  const text = `Session "${name}" is finished: it has no pod, and takes no turn. Delete it when you need it no more.`;
  throw new Problem('SessionFinished', text);
}

/** Returns the metadata without the fields that the client left out. */
export function metaOf({
  labels,
  annotations,
}: {
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
}): { labels?: Record<string, string>; annotations?: Record<string, string> } {
  return { ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) };
}
