import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { WebSocket } from 'ws';
import * as z from 'zod';
import { sessionParams } from '../../../api/openapi/schemas.ts';
import { Problem } from '../../../api/problems/problems.ts';
import { type Answer, type Call, type Route, route } from '../../../api/route.ts';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ApiCluster, type Rule } from './support.ts';

const PATH = '/v1/namespaces/default/sessions/notes/attach';
const ATTACH: Rule[] = [{ verbs: ['create'], resources: ['sessions/exec'] }];
const MiB = 1024 * 1024;

/** Serves the socket of the test's route. */
const does: { handle: (call: Call) => Promise<Answer> } = { handle: async () => echo };
const echo: Answer = {
  status: 101,
  async serve(socket) {
    for await (const message of socket.messages()) await socket.send(message);
  },
};

const ROUTES: Route[] = [
  route({
    method: 'GET',
    path: '/v1/namespaces/{namespace}/sessions/{session}/attach',
    operationId: 'attach',
    summary: 'A socket',
    rights: [{ verb: 'create', resource: 'sessions', subresource: 'exec', nameParam: 'session' }],
    params: sessionParams,
    query: z.strictObject({}),
    responses: { 101: { description: 'The socket.' } },
    isSocket: true,
    holds: () => 'commands',
    handle: (call) => does.handle(call),
  }),
];

describe('a WebSocket of the API', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start({ BERTH_API_MAX_COMMANDS: '8', BERTH_API_STALL_TIMEOUT: '1s' }, ROUTES);
    ({ token } = await api.user(ATTACH));
  });
  afterAll(() => api.close());

  /** Opens the socket, which is destroyed at the end of the test. */
  async function open(t: { onTestFinished: (fn: () => void) => void }, own = token, { url } = api) {
    const socket = new WebSocket(url.replace('http', 'ws') + PATH, { headers: { authorization: `Bearer ${own}` } });
    socket.on('error', () => {});
    t.onTestFinished(() => socket.terminate());
    const headers = new Promise<IncomingMessage>((resolve) => socket.on('upgrade', resolve));
    const closed = new Promise<[number, string]>((resolve) =>
      socket.on('close', (code, reason) => resolve([code, String(reason)])),
    );
    const refused = new Promise<{ status: number; problem: { code: string } }>((resolve) =>
      socket.on('unexpected-response', async (_request, response) => {
        const chunks = await response.toArray();
        resolve({ status: response.statusCode ?? 0, problem: JSON.parse(Buffer.concat(chunks).toString()) });
      }),
    );
    const opened = new Promise<undefined>((resolve) => socket.on('open', () => resolve(undefined)));
    return { socket, headers, opened, refused, closed };
  }
  const code = async (t: Parameters<typeof open>[0], own?: string) => {
    const { opened, refused } = await open(t, own);
    const refusal = await Promise.race([opened, refused]);
    return refusal && `${refusal.status} ${refusal.problem.code}`;
  };

  test('carries messages both ways, and its answer has the request’s id', async (t) => {
    does.handle = async () => echo;
    const { socket, headers, opened, closed } = await open(t);
    await opened;
    assert.match(String((await headers).headers['x-request-id']), /^[0-9a-f-]{36}$/);
    for (const text of ['one', 'two', 'x'.repeat(MiB)]) {
      socket.send(Buffer.from(text));
      const [answer] = await once(socket, 'message');
      assert.equal(String(answer), text);
    }
    socket.close(1000);
    assert.deepEqual(await closed, [1000, '']);
  });

  test('is refused without a token, without the right to the subresource, and with the right to the object alone', async (t) => {
    does.handle = async () => assert.fail('it was let in');
    const [nobody, reader] = await Promise.all([api.user([]), api.user([{ verbs: ['*'], resources: ['sessions'] }])]);
    assert.equal(await code(t, 'wrong'), '401 Unauthenticated');
    assert.equal(await code(t, nobody.token), '403 Forbidden');
    assert.equal(await code(t, reader.token), '403 Forbidden');
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`);
    const text = Buffer.concat(await socket.toArray()).toString();
    assert.match(text, /^HTTP\/1\.1 401 [\s\S]*x-request-id: [\s\S]*"code":"Unauthenticated"/i);
  });

  test('is refused by its handler as other requests are', async (t) => {
    does.handle = async () => {
      throw new Problem('SessionFinished', 'It is over.');
    };
    assert.equal(await code(t), '409 SessionFinished');
  });

  test('is what the page is: other requests are told so, and other pages take no upgrade', async () => {
    const answer = await api.call('GET', PATH, { token });
    assert.deepEqual([answer.status, answer.problem.code], [426, 'UpgradeRequired']);
    assert.equal(answer.headers.get('upgrade'), 'websocket');
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
    socket.write(`GET /healthz HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`);
    assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200 OK/);
    // The connection goes on: the offer was not taken.
    socket.write(`GET /healthz HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n`);
    assert.match(String(Buffer.concat(await socket.toArray())), /^HTTP\/1\.1 200 OK/);
  });

  test('counts for the caller’s limit of its kind until it is closed, and in the metrics', async (t) => {
    does.handle = async () => echo;
    const scraper = await api.scraper();
    const sample = async (name: string, label: string) => {
      const { text } = await api.call('GET', '/metrics', { token: scraper.token });
      return samplesOf(text, name)[`{${label}}`];
    };
    const first = await open(t);
    const second = await open(t);
    await Promise.all([first.opened, second.opened]);
    assert.equal(await code(t), '429 CallerLimit');
    assert.equal(await code(t, (await api.user(ATTACH)).token), undefined);
    first.socket.close(1000);
    await eventually(async () => (await code(t)) === undefined, { what: 'there is room again' });
    const route = '/v1/namespaces/{namespace}/sessions/{session}/attach';
    assert.ok(Number(await sample('berth_http_requests_total', `method="GET",route="${route}",code="101"`)) >= 1);
    assert.ok(Number(await sample('berth_http_refused_total', 'limit="commands",of="caller"')) >= 1);
  });

  test('makes a client that sends too much wait, and takes all in the end', async (t) => {
    const gate = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<number>();
    let paused = () => false;
    does.handle = async () => ({
      status: 101,
      async serve(socket) {
        await gate.promise;
        let bytes = 0;
        for await (const message of socket.messages()) {
          bytes += message.length;
          if (bytes === 48 * MiB) break;
        }
        taken.resolve(bytes);
      },
    });
    api.server.once('upgrade', (request) => {
      paused = () => request.socket.isPaused();
    });
    const { socket, opened } = await open(t);
    await opened;
    for (let i = 0; i < 48; i++) socket.send(Buffer.alloc(MiB));
    await eventually(() => paused(), { what: 'the client is not read' });
    assert.ok(socket.bufferedAmount > 0);
    gate.resolve();
    assert.equal(await taken.promise, 48 * MiB);
  });

  test('is cut under a client that takes nothing of what there is for it, whose handler waited meanwhile', async (t) => {
    let sent = 0;
    const over = Promise.withResolvers<unknown>();
    does.handle = async () => ({
      status: 101,
      async serve(socket) {
        try {
          for (; sent < 64; sent++) await socket.send(Buffer.alloc(MiB));
        } catch (error) {
          over.resolve(error);
          throw error;
        }
      },
    });
    const { socket, opened } = await open(t);
    await opened;
    socket.pause();
    assert.match(String(await over.promise), /the client has gone/);
    assert.ok(sent < 64);
  });

  test('tells its handler that the client has gone', async (t) => {
    const over = Promise.withResolvers<void>();
    does.handle = async ({ signal }) => ({
      status: 101,
      async serve() {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        over.resolve();
      },
    });
    const { socket, opened } = await open(t);
    await opened;
    socket.terminate();
    await over.promise;
  });

  test('is closed with the problem that its handler meets, and takes no text', async (t) => {
    does.handle = async () => ({
      status: 101,
      async serve() {
        throw new Problem('SessionFinished', 'It is over. '.repeat(20));
      },
    });
    const failed = await open(t);
    const [status, reason] = await failed.closed;
    assert.equal(status, 1011);
    assert.match(reason, /^SessionFinished: It is over/);
    does.handle = async () => echo;
    const { socket, opened, closed } = await open(t);
    await opened;
    socket.send('text');
    assert.equal((await closed)[0], 1003);
  });

  test('is closed with 1008 within seconds after the right to it was withdrawn', async (t) => {
    does.handle = async () => echo;
    const own = await api.user(ATTACH);
    const { opened, closed } = await open(t, own.token);
    await opened;
    const name = own.name.split(':').at(-1) as string;
    await api.cluster.client.delete(
      {
        group: 'rbac.authorization.k8s.io',
        version: 'v1',
        plural: 'rolebindings',
        kind: 'RoleBinding',
        namespaced: true,
      },
      { namespace: 'default', name },
    );
    assert.equal((await closed)[0], 1008);
  });

  test('is closed with 1012 when the server is stopped, also where its handler never ends and its client is not read', async (t) => {
    const other = await ApiCluster.start({}, ROUTES);
    try {
      does.handle = async () => ({ status: 101, serve: () => new Promise(() => {}) });
      const { token: own } = await other.user(ATTACH);
      const { socket, opened, closed } = await open(t, own, other);
      await opened;
      for (let i = 0; i < 8; i++) socket.send(Buffer.alloc(MiB));
      await other.stopServer();
      assert.deepEqual((await closed)[0], 1012);
    } finally {
      await other.cluster.stop();
    }
  });
});
