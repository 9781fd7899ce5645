/** Uses a client that openapi-typescript has made, as a user would. The test compiles it strictly and checks what it prints. */
import createClient from 'openapi-fetch';
import type { components, paths } from './api.ts';

const { API = '', TOKEN = '' } = process.env;
const client = createClient<paths>({ baseUrl: API, headers: { authorization: `Bearer ${TOKEN}` } });
const namespace = 'default';

/** The data of a successful answer; throws with the problem of another. */
function dataOf<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const body: components['schemas']['RunCreate'] = { spec: { class: 'echo', input: 'hello' } };
const run = dataOf(
  await client.POST('/v1/namespaces/{namespace}/runs', {
    params: { path: { namespace }, query: { wait: '60s' }, header: { 'Idempotency-Key': 'typescript' } },
    body,
  }),
);

const session = run.session.metadata.name;
const turn = run.turn?.metadata.name ?? '';
const ofTurn = { namespace, session, turn };
const artifacts = dataOf(
  await client.GET('/v1/namespaces/{namespace}/sessions/{session}/turns/{turn}/artifacts', {
    params: { path: ofTurn },
  }),
);
const content = dataOf(
  await client.GET('/v1/namespaces/{namespace}/sessions/{session}/turns/{turn}/artifacts/{name}', {
    params: { path: { ...ofTurn, name: artifacts.items[0]?.name ?? '' } },
    parseAs: 'text',
  }),
);

const created = dataOf(
  await client.POST('/v1/namespaces/{namespace}/sessions', {
    params: { path: { namespace } },
    body: { metadata: { name: 'by-typescript' }, spec: { class: 'echo', agent: {} } },
  }),
);
const ofSession = { namespace, session: created.metadata.name };
const held = dataOf(
  await client.POST('/v1/namespaces/{namespace}/sessions/{session}/suspend', {
    params: { path: ofSession },
    body: { hold: true },
  }),
);
dataOf(await client.POST('/v1/namespaces/{namespace}/sessions/{session}/resume', { params: { path: ofSession } }));
const listed = dataOf(
  await client.GET('/v1/namespaces/{namespace}/sessions', { params: { path: { namespace }, query: { limit: 10 } } }),
);
const refused = await client.GET('/v1/namespaces/{namespace}/sessions/{session}', {
  params: { path: { namespace, session: 'none' } },
});
const deleted = await client.DELETE('/v1/namespaces/{namespace}/sessions/{session}', { params: { path: ofSession } });

console.log(
  JSON.stringify({
    phase: run.phase,
    output: run.output,
    artifact: content,
    suspend: held.spec.suspend,
    listed: listed.items.some(({ metadata }) => metadata.name === created.metadata.name),
    refused: refused.error?.code,
    deleted: deleted.response.status,
  }),
);
