import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, test } from 'vitest';
import { describeError } from '../../../../cli/errors.ts';
import { ServerClient } from '../../../../cli/server/client.ts';
import { ServerObjects } from '../../../../cli/server/objects.ts';
import { TransportError } from '../../../../core/kube/errors.ts';
import { sessionclasses, sessions, turns } from '../../../../core/resources/kinds.ts';
import { systemClock } from '../../../../core/system.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A client of a server that gives these answers, one after the other, and the requests that came. */
async function serving(...answers: Answer[]) {
  const seen: { method: string; url: string; headers: IncomingMessage['headers'] }[] = [];
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers });
    request.resume().on('end', () => answers[Math.min(seen.length, answers.length) - 1]?.(request, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = {
    server: url,
    tls: {},
    headers: () => ({ authorization: 'Bearer hidden' }),
    namespace: 'default',
  };
  const outcomes: (number | Error)[] = [];
  const onRequest = (outcome: number | Error) => void outcomes.push(outcome);
  const client = new ServerClient(connection, { clock: systemClock, onRequest });
  closing.push(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { client, seen, url, outcomes };
}
const json =
  (status: number, body: string | object, headers: Record<string, string> = {}): Answer =>
  (_, response) => {
    const type = status < 400 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const problem = (status: number, code: string, detail: string, headers: Record<string, string> = {}) =>
  json(status, { type: 'x', title: 'x', status, code, detail }, headers);
const cut: Answer = ({ socket }) => socket.destroy();
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
const messageOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => assert.fail('it was answered'),
    (caught: unknown) => caught,
  );
  return describeError(error, { name: 'berth' });
};

describe('a client of the HTTP API', () => {
  test('repeats a create with its Idempotency-Key when the answer is lost', async () => {
    const { client, seen } = await serving(cut, json(201, { metadata: { name: 'x' } }));
    await client.json('POST', '/v1/x', { body: {}, key: 'k' });
    assert.deepEqual(
      seen.map(({ headers }) => headers['idempotency-key']),
      ['k', 'k'],
    );
  });
  test('does not repeat what has no key and may have been done', async () => {
    const { client, seen } = await serving(cut, json(204, ''));
    const { exitCode, message } = await messageOf(client.json('DELETE', '/v1/x'));
    assert.equal(exitCode, 3);
    assert.match(
      message,
      /^the server does not answer: DELETE http.*: (other side closed \(UND_ERR_SOCKET\)|.*ECONNRESET)$/,
    );
    assert.equal(seen.length, 1);
  });
  test('does not repeat a request whose caller does so himself', async () => {
    const { client, seen } = await serving(cut, json(200, {}));
    await assert.rejects(client.json('GET', '/v1/x', { retry: false }), { name: 'ServerUnreachable' });
    assert.equal(seen.length, 1);
  });
  test('says of a server that is not there where the connection went, also when it gives up', async () => {
    const nothing = await serving();
    await closing.pop()?.();
    const connection = { server: nothing.url, tls: {}, headers: () => ({}), namespace: 'default' };
    const outcomes: (number | Error)[] = [];
    const client = new ServerClient(connection, { clock: systemClock, onRequest: (each) => void outcomes.push(each) });
    const { message, exitCode } = await messageOf(client.json('POST', '/v1/x', { body: {}, deadlineMs: 50 }));
    await client.close();
    assert.equal(exitCode, 3);
    const { host, port } = new URL(nothing.url);
    assert.equal(
      message,
      `the server does not answer: POST http://${host}/v1/x: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
    // It is known that nothing was sent, so the request was tried again.
    for (const outcome of outcomes) assert.ok(outcome instanceof TransportError && !outcome.sent);
    assert.ok(outcomes.length > 0);
  });
  test('waits as Retry-After says, and asks again', async () => {
    const busy = problem(429, 'TooManyRequests', 'Too many.', { 'retry-after': '0' });
    const { client, seen } = await serving(busy, busy, json(200, { ok: true }));
    assert.deepEqual(await client.json('POST', '/v1/x', { body: {} }), { ok: true });
    assert.equal(seen.length, 3);
  });
  test('tells that the server went away while it took a file, and the error of the content where that is why', async () => {
    const upload = { headers: {}, signal: new AbortController().signal };
    const { client } = await serving(cut);
    const one = async function* () {
      yield Buffer.from('x');
    };
    const { message, exitCode } = await messageOf(client.upload('/v1/x', { ...upload, content: one() }));
    assert.equal(exitCode, 3);
    assert.match(message, /^the server does not answer: PUT http/);
    const lost = async function* () {
      yield Buffer.from('x');
      throw new Error('the disk is gone');
    };
    await assert.rejects(client.upload('/v1/x', { ...upload, content: lost() }), { message: 'the disk is gone' });
  });
  test('takes an answer whose JSON is cut for none', async () => {
    const { client } = await serving(json(200, '{"metadata"'));
    const { message, exitCode } = await messageOf(client.json('GET', '/v1/x'));
    assert.equal(exitCode, 3);
    assert.match(message, /^the server does not answer: GET http.*: the answer is no JSON$/);
  });
  test('keeps every digit of a number', async () => {
    const { client } = await serving(json(200, '{"n":12345678901234567890.10}'));
    assert.equal(JSON.stringify(await client.json('GET', '/v1/x')), '{"n":12345678901234567890.10}');
  });
  test('tells refusals in the words of the server, with the exit code of a refusal', async () => {
    const { client } = await serving(problem(422, 'NotAllowed', 'spec.image: no.'));
    assert.deepEqual(await messageOf(client.json('POST', '/v1/x', { body: {} })), {
      message: 'spec.image: no.',
      exitCode: 2,
    });
  });
  test('tells a token that is not accepted, without the token', async () => {
    const { client } = await serving(problem(401, 'Unauthenticated', 'No.'));
    const { message, exitCode } = await messageOf(client.json('GET', '/v1/x'));
    assert.equal(exitCode, 3);
    assert.match(message, /does not accept the token/);
    assert.doesNotMatch(message, /hidden/);
  });
  test('tells a server that is not Berth’s by what it answers', async () => {
    for (const other of [
      json(404, '<html>', { 'content-type': 'text/html' }),
      json(200, 'hello', { 'content-type': 'text/html' }),
      json(403, { kind: 'Status', code: 403 }),
      json(302, '', { location: '/login' }),
    ]) {
      const { client, url } = await serving(other);
      const { message, exitCode } = await messageOf(client.json('GET', '/v1/x'));
      assert.equal(exitCode, 3);
      assert.ok(message.startsWith(`${url} is not Berth's HTTP API`), message);
    }
    const { client } = await serving(json(200, {}));
    const objects = new ServerObjects(client);
    assert.equal((await messageOf(objects.get(sessions, { namespace: 'default', name: 'x' }))).exitCode, 3);
    assert.equal((await messageOf(objects.list(sessions, { namespace: 'default' }))).exitCode, 3);
  });
});

describe('objects of the HTTP API', () => {
  const meta = (name: string) => ({
    name,
    namespace: 'default',
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '',
  });
  test('are listed to the last page', async () => {
    const { client, seen } = await serving(
      json(200, { items: [{ metadata: meta('a') }], continue: 'more' }),
      json(200, { items: [{ metadata: meta('b') }] }),
    );
    const { items } = await new ServerObjects(client).list(sessions, { namespace: 'default', labelSelector: '!x' });
    assert.deepEqual(
      items.map(({ kind, metadata: { name } }) => [kind, name]),
      [
        ['Session', 'a'],
        ['Session', 'b'],
      ],
    );
    assert.match(
      seen[1]?.url ?? '',
      /^\/v1\/namespaces\/default\/sessions\?labelSelector=%21x&limit=100&continue=more$/,
    );
  });
  test('a turn is found by its name alone, and its session asked for once', async () => {
    const turn = { metadata: meta('t'), spec: { session: 's' } };
    const { client, seen } = await serving(json(200, { items: [turn] }), json(200, turn));
    const objects = new ServerObjects(client);
    await objects.get(turns, { namespace: 'default', name: 't' });
    await objects.get(turns, { namespace: 'default', name: 't' });
    assert.deepEqual(
      seen.map(({ url }) => url.replace('/v1/namespaces/default', '')),
      ['/turns?name=t&limit=1', '/sessions/s/turns/t', '/sessions/s/turns/t'],
    );
  });
  test('are listed up to the limit, and anew without repeats where the list has changed too much', async () => {
    const { client, seen } = await serving(
      json(200, { items: [{ metadata: meta('a') }, { metadata: meta('b') }], continue: 'old' }),
      problem(410, 'ContinueExpired', 'Begin anew.'),
      json(200, { items: [{ metadata: meta('b') }, { metadata: meta('c') }, { metadata: meta('d') }], continue: 'x' }),
    );
    const { items } = await new ServerObjects(client).list(sessions, { namespace: 'default', limit: 3 });
    assert.deepEqual(
      items.map(({ metadata: { name } }) => name),
      ['a', 'b', 'c'],
    );
    assert.equal(seen.length, 3);
  });
  test('of other kinds may not be read, without a request', async () => {
    const { client, seen } = await serving(json(200, {}));
    await assert.rejects(new ServerObjects(client).get(sessionclasses, { name: 'default' }), { code: 403 });
    assert.equal(seen.length, 0);
  });
  test('a watch goes on after the version that was read, and reads the object after each event of it', async () => {
    const stream: Answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': berth\n\nid: 6.6\nevent: session\ndata: {"session":"other"}\n\n');
      response.end('id: 7.7\nevent: session\ndata: {"session":"a"}\n\n');
    };
    const at = (resourceVersion: string) => json(200, { metadata: { ...meta('a'), resourceVersion } });
    const { client, seen } = await serving(stream, at('5'), at('7'));
    const { signal } = new AbortController();
    const scope = { namespace: 'default', fieldSelector: 'metadata.name=a', resourceVersion: '5', signal };
    const events = await all(new ServerObjects(client).watch(sessions, scope));
    assert.equal(seen[0]?.headers['last-event-id'], '5.5');
    assert.deepEqual(
      events.map((event) => event.type === 'MODIFIED' && event.object.metadata.resourceVersion),
      ['7'],
    );
    assert.equal(seen.length, 3);
  });
});

describe('a stream of events', () => {
  const events =
    (...texts: string[]): Answer =>
    (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const text of texts) response.write(text);
      setImmediate(() => response.destroy());
    };
  test('goes on after its last event when it was cut, and its client tells of each answer', async () => {
    const { client, seen, outcomes } = await serving(
      events(': berth\n\nid: 1\nevent: log\ndata: {"te', 'xt":"ü"}\n\nid: 2\nevent: log\ndata: {"text":"to'),
      problem(503, 'ShuttingDown', 'Later.', { 'retry-after': '0' }),
      events('id: 3\nevent: deleted\ndata: {"uid":"u"}\n\n'),
    );
    const { signal } = new AbortController();
    const options = { signal, isLast: ({ type }: { type: string }) => type === 'deleted' };
    const ids = (await all(client.events('/v1/x/events', options))).map(({ id }) => id);
    assert.deepEqual(ids, ['1', '3']);
    assert.deepEqual(
      seen.map(({ headers }) => headers['last-event-id']),
      [undefined, '1', '1'],
    );
    assert.deepEqual(outcomes, [200, 503, 200]);
  });
  test('outlives a server that does not know its clients for a moment', async () => {
    const { client, seen } = await serving(
      events('id: 1\nevent: log\ndata: {}\n\n'),
      problem(401, 'Unauthenticated', 'No.'),
      problem(403, 'Forbidden', 'No.'),
      problem(500, 'Internal', 'A fault.'),
      events('id: 2\nevent: deleted\ndata: {"uid":"u"}\n\n'),
    );
    const { signal } = new AbortController();
    const isLast = ({ type }: { type: string }) => type === 'deleted';
    const ids = (await all(client.events('/v1/x/events', { signal, isLast }))).map(({ id }) => id);
    assert.deepEqual([ids, seen.length], [['1', '2'], 5]);
  });
  test('that is refused at first is refused', async () => {
    const { client } = await serving(problem(403, 'Forbidden', 'No.'));
    const { signal } = new AbortController();
    const stream = client.events('/v1/x/events', { signal, isLast: () => false });
    await assert.rejects(all(stream), { message: 'No.' });
  });
});
