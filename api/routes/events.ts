import * as z from 'zod';
import { parseSessionCursor, parseStateCursor } from '../../core/follow/cursor.ts';
import { namespaceEvents, sessionEvents } from '../../core/follow/session-events.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { flag, namespaceParams, noQuery, sessionParams } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Answer, type Route, route } from '../route.ts';
import { asEventStream } from '../streams/event-stream.ts';
import { shownLogs } from '../streams/shown-logs.ts';

const query = z.strictObject({
  logs: flag().describe('With the lines that the agent prints. ?logs means true.'),
});

const headers = z.strictObject({
  'Last-Event-ID': z
    .string()
    .optional()
    .describe('Id of the event after which the stream goes on. Ids of zeros alone begin with all that is kept.'),
});

const RESUMES =
  'Each event has an id. Last-Event-ID goes on after it; without, the stream begins with the present states, of turns with those that have not ended. States are told at least once, and those that are over before they could be told are left out.';

export const eventRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/sessions/{session}/events',
    operationId: 'followEvents',
    summary: 'Everything that happens to a session, live',
    description: `Server-sent events until the session is deleted. ${RESUMES} Events of the agent and lines are told once after the id of the one before, as long as the log of the session’s pod has them; a line that comes in parts is told again from its beginning.`,
    rights: [
      { verb: 'get', resource: 'sessions', nameParam: 'session' },
      { verb: 'list', resource: 'turns' },
    ],
    params: sessionParams,
    query,
    headers,
    responses: { 200: { description: 'The events.', schema: 'SessionEvents' } },
    holds: () => 'streams',
    async handle({ params, query: { logs }, lastEventId, signal }, { api, clock, watched, logs: shared }) {
      const { namespace, session: name } = params;
      const from = placeOf(lastEventId, parseSessionCursor, '1204.1207.3.17.7f0c6f4e');
      const { metadata, spec } = await api.get(sessions, { namespace, name }, { signal });
      const states = await watched.follow(namespace, signal);
      const { uid, resourceVersion } = metadata;
      const options = { namespace, name, uid, resourceVersion, from, logs, signal };
      const events = sessionEvents({ clock, states, read: shared.readFrom(shownLogs(api, spec)) }, options);
      return answer(asEventStream(events, clock, signal));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/events',
    operationId: 'followNamespace',
    summary: 'What happens to all sessions and turns of a namespace, live',
    description: `Server-sent events as of one session, without those of agents and without lines. ${RESUMES}`,
    rights: [
      { verb: 'list', resource: 'sessions' },
      { verb: 'list', resource: 'turns' },
    ],
    params: namespaceParams,
    query: noQuery,
    headers,
    responses: { 200: { description: 'The events.', schema: 'NamespaceEvents' } },
    holds: () => 'streams',
    async handle({ params: { namespace }, lastEventId, signal }, { clock, watched }) {
      const from = placeOf(lastEventId, parseStateCursor, '1204.1207');
      const states = await watched.follow(namespace, signal);
      return answer(asEventStream(namespaceEvents(states, { from, signal }), clock, signal));
    },
  }),
];

function placeOf<T>(id: string | undefined, parse: (text: string) => T | undefined, example: string): T | undefined {
  if (id === undefined) return undefined;
  const place = parse(id);
  if (place) return place;
  throw new Problem('InvalidParameter', `Last-Event-ID must be an id of this page’s events, as ${example}.`, {
    fields: [{ field: 'Last-Event-ID', message: `must be an id of this page’s events, as ${example}` }],
  });
}

const answer = (stream: AsyncIterable<string>): Answer => ({
  status: 200,
  stream,
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
});
