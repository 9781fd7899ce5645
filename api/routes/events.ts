import { sessions } from '../../core/resources/kinds.ts';
import { agentEvents, asEventStream, lastPlace, parsePlace } from '../agent-events.ts';
import { Problem } from '../problems.ts';
import { type Route, route } from '../route.ts';
import { noQuery, sessionParams } from '../schemas.ts';

export const eventRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/sessions/{session}/events',
    operationId: 'followEvents',
    summary: 'What the session’s agents tell while they work, live',
    description:
      'Server-sent events named agent, with {turn, at, event} as data, from now on or after the Last-Event-ID sent (incarnation.seq). Ends when the session is deleted.',
    rights: [
      { verb: 'get', resource: 'sessions', nameParam: 'session' },
      { verb: 'list', resource: 'turns' },
    ],
    params: sessionParams,
    query: noQuery,
    responses: { 200: { description: 'The events.', schema: 'Events' } },
    holds: () => 'streams',
    async handle({ params, lastEventId, signal }, { api, clock }) {
      const { namespace, session: name } = params;
      const seen = parsePlace(lastEventId);
      if (lastEventId !== undefined && !seen) {
        throw new Problem('InvalidParameter', 'Last-Event-ID must be an id that this page gave, as 3.17.');
      }
      const session = await api.get(sessions, { namespace, name }, { signal });
      const { uid } = session.metadata;
      const last = seen ?? (await lastPlace(api, session, signal));
      const events = agentEvents(api, clock, { namespace, name, uid }, last, signal);
      return {
        status: 200,
        stream: asEventStream(events, clock, signal),
        headers: { 'content-type': 'text/event-stream; charset=utf-8' },
      };
    },
  }),
];
