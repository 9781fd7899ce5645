import * as z from 'zod';
import { defined } from '../../core/defined.ts';
import { podText, sessionText } from '../../core/pod-log/session-text.ts';
import { sessions } from '../../core/resources/kinds.ts';
import { flag, sessionParams } from '../openapi/schemas.ts';
import { Problem } from '../problems/problems.ts';
import { type Route, route } from '../route.ts';
import { shownLogs } from '../streams/shown-logs.ts';

const query = z.strictObject({
  follow: flag().describe('Live, until the session is finished or deleted. ?follow means true.'),
  sinceTime: z.iso
    .datetime({ offset: true })
    .optional()
    .describe('Leaves out what the present pod printed before this time, such as the startedAt of a turn.'),
});

export const logRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/sessions/{session}/logs',
    operationId: 'getSessionLogs',
    summary: 'What the session’s agents print and tell, of all turns of its pod',
    description:
      'After redaction, as kubectl logs has it but without the runner’s frames; what a turn printed is kept in its log. With follow live, and of all pods that come.',
    rights: [
      { verb: 'get', resource: 'sessions', nameParam: 'session' },
      { verb: 'list', resource: 'turns' },
    ],
    params: sessionParams,
    query,
    codes: ['NoLog'],
    responses: { 200: { description: 'The text.', schema: 'Text' } },
    holds: () => 'streams',
    async handle({ params, query: { follow, sinceTime }, signal }, { api, clock }) {
      const { namespace, session: name } = params;
      const { metadata, spec, status } = await api.get(sessions, { namespace, name }, { signal });
      const { podName, incarnation = 0 } = status ?? {};
      const { uid } = metadata;
      const options = { ...defined({ sinceTime }), signal };
      if (!follow && !podName) {
        const text = `Session "${name}" has no pod at present. GET …/turns/{turn}/log for what its turns printed.`;
        throw new Problem('NoLog', text);
      }
      const shown = shownLogs(api, spec);
      const text = follow
        ? sessionText(shown, clock, { namespace, name, uid }, options)
        : podText(shown, { namespace, name: podName as string, session: uid, incarnation }, options);
      return {
        status: 200,
        stream: untilGone(text, signal),
        headers: { 'content-type': 'text/plain; charset=utf-8' },
      };
    },
  }),
];

/** Ends without an error when the client goes or the server stops. */
async function* untilGone(text: AsyncIterable<string>, signal: AbortSignal): AsyncGenerator<string> {
  // The empty text gives the client an answer before there is a text.
  yield '';
  try {
    yield* text;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
