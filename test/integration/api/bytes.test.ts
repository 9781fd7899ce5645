import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, test } from 'vitest';
import * as z from 'zod';
import { namespaceParams } from '../../../api/openapi/schemas.ts';
import { type Answer, type Call, type Route, route } from '../../../api/route.ts';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const MiB = 1024 * 1024;
const PATH = '/v1/namespaces/default/files';
/** Bytes that no buffers between two programs hold. */
const LARGE = randomBytes(48 * MiB);

/** What the handlers of the test's routes do. */
const does: { put?: (call: Call) => Promise<Answer>; get?: () => Answer; post?: (body: unknown) => void } = {};

const common = {
  path: '/v1/namespaces/{namespace}/files',
  summary: 'Files',
  rights: [{ verb: 'get' as const, resource: 'sessions' as const }],
  params: namespaceParams,
  query: z.strictObject({}),
  responses: { 200: { description: 'The file.', schema: 'File' as const } },
};
const ROUTES: Route[] = [
  route({ ...common, method: 'GET', operationId: 'getFile', handle: async () => does.get!() }),
  route({
    ...common,
    method: 'HEAD',
    operationId: 'headFile',
    handle: async () => ({ status: 200, headers: { 'content-length': '1234567', 'content-type': 'text/x-file' } }),
  }),
  route({ ...common, method: 'PUT', operationId: 'putFile', takesBytes: true, handle: (call) => does.put!(call) }),
  route({
    ...common,
    method: 'POST',
    operationId: 'postFile',
    body: z.strictObject({ a: z.int() }),
    async handle({ body }) {
      return { status: 200, body };
    },
  }),
];

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function digest(bytes: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of bytes) hash.update(piece);
  return hash.digest('hex');
}

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}

describe('a route of bytes', () => {
  let api: ApiCluster;
  let token: string;
  /** The newest request, and its answer, as Node has them. */
  let newest: { request: IncomingMessage; response: ServerResponse };
  beforeAll(async () => {
    api = await ApiCluster.start({}, ROUTES);
    ({ token } = await api.user(EVERYTHING));
    api.server.prependListener('request', (request, response) => {
      newest = { request, response };
    });
  });
  afterAll(() => api.close());

  const open = async (method: string, ...headers: string[]): Promise<Socket> => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    await once(socket, 'connect');
    const lines = [`${method} ${PATH} HTTP/1.1`, 'Host: berth', `Authorization: Bearer ${token}`, ...headers];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return socket;
  };

  test('takes a body of any length and type, as it is', async () => {
    does.put = async ({ bytes }) => ({ status: 200, body: { sha256: await digest(bytes) } });
    for (const type of ['application/json', 'application/octet-stream', 'text/plain; charset=latin1']) {
      const answer = await api.call('PUT', PATH, { token, body: LARGE, headers: { 'content-type': type } });
      assert.deepEqual(answer.body, { sha256: sha256(LARGE) }, type);
    }
    assert.deepEqual((await api.call('PUT', PATH, { token })).body, { sha256: sha256(Buffer.alloc(0)) });
  });

  test('leaves the bodies of other routes to be JSON', async () => {
    assert.deepEqual((await api.call('POST', PATH, { token, body: { a: 1 } })).body, { a: 1 });
    const headers = { 'content-type': 'text/plain' };
    assert.equal(
      (await api.call('POST', PATH, { token, body: '{"a":1}', headers })).problem.code,
      'UnsupportedMediaType',
    );
  });

  test('reads no more of a body than its handler, whose client waits meanwhile', async () => {
    const gate = Promise.withResolvers<void>();
    does.put = async ({ bytes }) => {
      await gate.promise;
      return { status: 200, body: { sha256: await digest(bytes) } };
    };
    const socket = await open('PUT', `Content-Length: ${LARGE.length}`);
    socket.write(LARGE);
    await eventually(() => newest.request.url === PATH && newest.request.socket.isPaused(), { what: 'it is not read' });
    assert.ok(newest.request.readableLength < MiB);
    gate.resolve();
    const [answer] = await once(socket, 'data');
    assert.match(String(answer), new RegExp(sha256(LARGE)));
    socket.destroy();
  });

  test('makes no more of an answer than its client reads, and sends all to one that reads late', async () => {
    let made = 0;
    does.get = () => ({
      status: 200,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(LARGE.length) },
      content: (async function* () {
        for (const piece of pieces(LARGE)) {
          made += piece.length;
          yield piece;
        }
      })(),
    });
    const socket = await open('GET', 'Connection: close');
    socket.pause();
    await eventually(() => made > 0 && newest.response.writableNeedDrain, { what: 'the client is waited for' });
    assert.ok(made < LARGE.length);
    const chunks = await socket.toArray();
    const text = Buffer.concat(chunks);
    const body = text.subarray(text.indexOf('\r\n\r\n') + 4);
    assert.equal(sha256(body), sha256(LARGE));
  });

  const SHORT: [string, string | undefined, () => AsyncGenerator<Buffer>][] = [
    [
      'that fails in the middle',
      undefined,
      async function* () {
        yield Buffer.from('begin');
        throw new Error('the file cannot be read');
      },
    ],
    [
      'that is shorter than its length',
      '10',
      async function* () {
        yield Buffer.from('begin');
      },
    ],
    [
      'that is longer than its length',
      '3',
      async function* () {
        yield Buffer.from('be');
        yield Buffer.from('gin');
      },
    ],
  ];
  for (const [what, length, content] of SHORT) {
    test(`cuts the connection under content ${what}`, async () => {
      const headers = { 'content-type': 'text/plain', ...(length === undefined ? {} : { 'content-length': length }) };
      does.get = () => ({ status: 200, headers, content: content() });
      await assert.rejects(api.call('GET', PATH, { token }).then(({ status }) => assert.equal(status, 500) as never));
    });
  }

  test('answers HEAD with the headers alone, on a connection that goes on', async () => {
    const socket = await open('HEAD');
    const [first] = await once(socket, 'data');
    assert.match(String(first), /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(String(first), /content-length: 1234567\r\n/i);
    assert.match(String(first), /content-type: text\/x-file\r\n/i);
    assert.ok(String(first).endsWith('\r\n\r\n'));
    socket.write('GET /healthz HTTP/1.1\r\nHost: berth\r\nConnection: close\r\n\r\n');
    assert.match(String(Buffer.concat(await socket.toArray())), /^HTTP\/1\.1 200 OK[\s\S]*ok\n$/);
  });

  test('reads no body of a caller without the right', async () => {
    let isAsked = false;
    does.put = async () => {
      isAsked = true;
      return { status: 200 };
    };
    const nobody = await api.user([]);
    const answer = await api.call('PUT', PATH, { token: nobody.token, body: 'x' });
    assert.deepEqual([answer.status, isAsked], [403, false]);
  });

  test('tells its handler that a client left in the middle of its body', async () => {
    const failed = Promise.withResolvers<unknown>();
    does.put = ({ bytes }) =>
      digest(bytes).then(
        () => failed.resolve('the body was whole') as never,
        (error) => {
          failed.resolve(error);
          throw error;
        },
      );
    const socket = await open('PUT', 'Content-Length: 100');
    socket.write('some');
    await eventually(() => newest.request.url === PATH && newest.request.readableFlowing !== null, {
      what: 'it is read',
    });
    socket.destroy();
    assert.ok((await failed.promise) instanceof Error);
  });

  test('closes the connection after an answer that came before the end of the body', async () => {
    does.put = async () => ({ status: 200, body: {} });
    const socket = await open('PUT', 'Content-Length: 100');
    socket.write('some');
    const text = String(Buffer.concat(await socket.toArray()));
    assert.match(text, /^HTTP\/1\.1 200 OK/);
    assert.match(text, /connection: close/i);
  });

  test('cuts content, and does not end it, when the server is stopped', async () => {
    const other = await ApiCluster.start({}, ROUTES);
    try {
      const own = await other.user(EVERYTHING);
      const headers = { 'content-type': 'text/plain' };
      does.get = () => ({
        status: 200,
        headers,
        content: (async function* () {
          yield Buffer.from('begin');
          await new Promise(() => {});
        })(),
      });
      const answer = await fetch(other.url + PATH, { headers: { authorization: `Bearer ${own.token}` } });
      const closing = other.stopServer();
      await assert.rejects(answer.text());
      await closing;
    } finally {
      await other.cluster.stop();
    }
  });
});
