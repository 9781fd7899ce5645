import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { KubeClient } from '../../../core/kube/client.ts';
import { ApiError, isConflict, isNotFound, TransportError } from '../../../core/kube/errors.ts';
import { pods, secrets, subjectAccessReviews } from '../../../core/kube/resources.ts';
import { turns } from '../../../core/resources/kinds.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { answer, refuse } from '../../support/kube-server.ts';
import { seededRandom } from '../../support/random.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { serverAndClient } from './support.ts';

const POD = { metadata: { namespace: 'ns', name: 'a' }, spec: { containers: [] } };
const REF = { namespace: 'ns', name: 'a' };
const PODS = '/api/v1/namespaces/ns/pods';

const unexpected = () => assert.fail('it was not refused');

describe('requests', () => {
  test('an object is created, read, listed, patched, replaced and deleted with fields nobody declared kept', async (t) => {
    const { server, client } = await serverAndClient(t);
    const created = await client.create(pods, { ...POD, extra: { kept: true } } as typeof POD);
    assert.equal(created.metadata.resourceVersion, '101');
    assert.deepEqual((await client.get(pods, REF)) as unknown, created);
    const patched = await client.patch(pods, REF, { metadata: { labels: { a: 'b' } } });
    assert.deepEqual(patched.metadata.labels, { a: 'b' });
    const replaced = await client.replace(pods, { ...patched, spec: { containers: [{ name: 'c' }] } });
    assert.deepEqual((replaced as unknown as { extra: unknown }).extra, { kept: true });
    await assert.rejects(client.replace(pods, patched), isConflict);
    assert.equal((await client.list(pods, { namespace: 'ns' })).items.length, 1);
    await client.delete(pods, REF, { uid: created.metadata.uid, gracePeriodSeconds: 0 });
    await assert.rejects(client.get(pods, REF), isNotFound);

    const [create, , patch, , , list, del] = server.requests;
    assert.equal(create?.headers.authorization, 'Bearer test-token');
    assert.equal(create?.query.get('fieldManager'), 'berth-test');
    assert.equal(JSON.parse(create?.body ?? '').kind, 'Pod');
    assert.equal(patch?.headers['content-type'], 'application/merge-patch+json');
    assert.equal(list?.path, PODS);
    assert.deepEqual(JSON.parse(del?.body ?? '').preconditions, { uid: created.metadata.uid });
  });

  test('numbers in objects of Berth’s kinds keep every digit, read, listed, watched and written back', async (t) => {
    const { server, client } = await serverAndClient(t);
    const exact = '[9007199254740993,-9223372036854775808,1.00000000000000000001]';
    const turn = `{"metadata":{"namespace":"ns","name":"t","uid":"u","resourceVersion":"7","generation":3},"spec":{"input":${exact}}}`;
    server.intercept = ({ method, query }, response) => {
      const watched = `{"type":"ADDED","object":${turn}}\n`;
      const listed = `{"metadata":{"resourceVersion":"7"},"items":[${turn}]}`;
      const isList = method === 'GET' && query.has('limit');
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(query.has('watch') ? watched : isList ? listed : turn);
      return true;
    };
    const inputOf = (object: { spec: { input?: unknown } } | undefined) => JSON.stringify(object?.spec.input);
    const ref = { namespace: 'ns', name: 't' };
    const read = await client.get(turns, ref);
    assert.deepEqual([inputOf(read), read.metadata.generation], [exact, 3]);
    assert.equal(inputOf((await client.list(turns, { namespace: 'ns', limit: 1 })).items[0]), exact);
    const { signal } = new AbortController();
    const { value } = await client.watch(turns, { namespace: 'ns', resourceVersion: '1', signal }).next();
    assert.equal(value?.type === 'ADDED' && inputOf(value.object), exact);
    for (const written of [
      await client.create(turns, read),
      await client.replace(turns, read),
      await client.patch(turns, ref, { spec: { input: read.spec.input } }),
    ]) {
      assert.equal(inputOf(written), exact);
      assert.ok(server.requests.at(-1)?.body.includes(`"input":${exact}`));
    }
    assert.equal(inputOf((await client.get(pods, ref)) as never), '[9007199254740992,-9223372036854776000,1]');
  });

  test('the status subresource has its own path and a cluster-scoped resource none of a namespace', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put(PODS, POD);
    await client.patch(pods, REF, { status: { phase: 'Failed' } }, { subresource: 'status' });
    await client.create(subjectAccessReviews, { metadata: { name: '' }, spec: {} });
    assert.deepEqual(
      server.requests.map(({ method, path }) => `${method} ${path}`),
      [`PATCH ${PODS}/a/status`, 'POST /apis/authorization.k8s.io/v1/subjectaccessreviews'],
    );
  });

  test('a name that would address another path is refused before anything is sent', async (t) => {
    const { server, client } = await serverAndClient(t);
    for (const name of ['', '.', '..']) {
      await assert.rejects(async () => client.get(pods, { namespace: 'ns', name }), TypeError);
    }
    await assert.rejects(async () => client.get(pods, { name: 'a' }), /needs a namespace/);
    await assert.rejects(client.get(pods, { namespace: 'ns', name: 'a/../../b' }), isNotFound);
    assert.equal(server.requests[0]?.path, `${PODS}/a%2F..%2F..%2Fb`);
  });

  test('interim answers of a proxy are passed over, also before a stream', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put(PODS, POD);
    server.intercept = ({ path }, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      if (path.endsWith('/log')) response.end('printed');
      return path.endsWith('/log');
    };
    assert.equal((await client.get(pods, REF)).metadata.name, 'a');
    const pieces: Buffer[] = [];
    for await (const piece of client.podLog(REF, { container: 'c' })) pieces.push(piece);
    assert.equal(Buffer.concat(pieces).toString(), 'printed');
  });

  test('an error carries the code, reason, message and causes of the Status', async (t) => {
    const { server, client } = await serverAndClient(t);
    const details = { causes: [{ field: 'spec.x', reason: 'FieldValueInvalid', message: 'no' }] };
    server.intercept = (_request, response) => {
      answer(response, 422, { kind: 'Status', code: 422, reason: 'Invalid', message: 'spec.x: no', details });
      return true;
    };
    const error = await client.create(pods, POD).then(unexpected, (caught: unknown) => caught);
    assert.ok(error instanceof ApiError);
    assert.deepEqual(
      [error.code, error.reason, error.message, error.status.details?.causes],
      [422, 'Invalid', 'spec.x: no', details.causes],
    );
  });

  test('an error page of a proxy becomes an ApiError with its first line', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = (_request, response) => {
      response.writeHead(502, { 'content-type': 'text/html' });
      response.end('<h1>Bad gateway</h1>\nmore');
      return true;
    };
    await assert.rejects(client.get(pods, REF, { retry: false }), (error) => {
      return error instanceof ApiError && error.code === 502 && /HTTP 502: <h1>Bad gateway<\/h1>$/.test(error.message);
    });
  });

  test('raw reads text and JSON paths', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = (request, response) => {
      if (request.path === '/version') answer(response, 200, { gitVersion: 'v1.35.0' });
      else response.end('ok');
      return true;
    };
    assert.deepEqual(await client.raw('GET', '/version'), { gitVersion: 'v1.35.0' });
    assert.equal(await client.raw('GET', '/healthz'), 'ok');
  });

  test('many requests share few connections and open watches take none of them', async (t) => {
    const { server, client } = await serverAndClient(t, { maxConnections: 2 });
    server.put(PODS, POD);
    const stop = new AbortController();
    const watches = Array.from({ length: 5 }, async () => {
      for await (const _ of client.watch(pods, { resourceVersion: '100', signal: stop.signal })) break;
    });
    await Promise.all(watches);
    await eventually(() => server.connections === 0, { what: 'the connections that were left are gone' });
    const silent = Array.from({ length: 5 }, async () => {
      for await (const _ of client.watch(pods, { resourceVersion: '101', signal: stop.signal })) assert.fail();
    });
    await eventually(() => server.watchers === 5);
    await Promise.all(Array.from({ length: 40 }, () => client.get(pods, REF)));
    assert.ok(server.connections <= 7, `${server.connections} connections`);
    stop.abort(new Error('enough'));
    for (const watch of silent) await assert.rejects(watch, /enough/);
  });
});

describe('retries', () => {
  /** Answers the first `times` requests with an error, then as usual. */
  const failing = (times: number, code: number, headers: Record<string, string> = {}) => {
    let left = times;
    return (_request: unknown, response: Parameters<typeof refuse>[0]) => {
      if (left-- <= 0) return false;
      refuse(response, code, 'Whatever', 'try later', headers);
      return true;
    };
  };

  for (const code of [429, 500, 502, 503, 504]) {
    test(`a read is tried again after ${code}`, async (t) => {
      const { server, client } = await serverAndClient(t);
      server.put(PODS, POD);
      server.intercept = failing(2, code);
      assert.equal((await client.get(pods, REF)).metadata.name, 'a');
      assert.equal(server.requests.length, 3);
    });
  }

  for (const [what, code, headers, tries] of [
    ['429', 429, {}, 2],
    ['503 with Retry-After', 503, { 'retry-after': '0' }, 2],
    ['503 without Retry-After', 503, {}, 1],
    ['500', 500, { 'retry-after': '0' }, 1],
    ['504', 504, {}, 1],
    ['409', 409, {}, 1],
  ] as const) {
    test(`a write is ${tries === 2 ? '' : 'not '}tried again after ${what}`, async (t) => {
      const { server, client } = await serverAndClient(t);
      server.intercept = failing(1, code, headers);
      const created = client.create(pods, POD);
      await (tries === 2 ? created : assert.rejects(created, { code }));
      assert.equal(server.requests.length, tries);
    });
  }

  test('a review is tried again like a read because it stores nothing', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = failing(1, 500);
    await client.create(subjectAccessReviews, { metadata: { name: '' }, spec: {} });
    assert.equal(server.requests.length, 2);
  });

  test('a call with retry: false ends with the first answer', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = failing(1, 429);
    await assert.rejects(client.get(pods, REF, { retry: false }), { code: 429 });
    assert.equal(server.requests.length, 1);
  });

  test('Retry-After is honoured to the full second', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t, { clock });
    server.put(PODS, POD);
    server.intercept = failing(1, 429, { 'retry-after': '3' });
    const got = client.get(pods, REF);
    // The wait stands in place of the request's own deadline timer of 15 s.
    await eventually(() => clock.nextIn !== undefined && clock.nextIn < 15_000 && server.requests.length === 1);
    await clock.advance(2_999);
    assert.equal(server.requests.length, 1);
    await clock.advance(252);
    await got;
    assert.equal(server.requests.length, 2);
  });

  test('a wait that the deadline does not allow ends the call at once with the last error', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = failing(1, 429, { 'retry-after': '60' });
    await assert.rejects(client.get(pods, REF), (error) => error instanceof ApiError && error.retryAfterMs === 60_000);
  });

  test('a read whose connection is cut is sent again and a write is not', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.put(PODS, POD);
    let cuts = 0;
    server.intercept = (_request, response) => {
      if (cuts++ > 0) return false;
      response.destroy();
      return true;
    };
    assert.equal((await client.get(pods, REF)).metadata.name, 'a');
    cuts = 0;
    const error = await client.patch(pods, REF, {}).then(unexpected, (caught: unknown) => caught);
    assert.ok(error instanceof TransportError && error.sent);
    assert.match(error.message, /^PATCH http:\/\/127\.0\.0\.1:\d+\/api\/v1\/namespaces\/ns\/pods\/a: /);
    assert.equal(server.requests.filter(({ method }) => method === 'PATCH').length, 1);
  });

  test('an answer cut in its middle is an error and never half an object', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"metadata":{}');
      setImmediate(() => response.destroy());
      return true;
    };
    await assert.rejects(client.get(pods, REF, { retry: false }), TransportError);
  });

  test('a write is repeated until the server listens again because a refused connection carried nothing', async (t) => {
    let refused = 0;
    const log = { ...silentLogger, debug: () => void refused++ };
    const { server, client } = await serverAndClient(t, { log });
    await server.stop();
    const created = client.create(pods, POD);
    await eventually(() => refused > 0);
    await server.start();
    assert.equal((await created).metadata.name, 'a');
    assert.equal(server.requests.length, 1);
  });
});

describe('a program that only calls', () => {
  test('stays alive while a call waits for its next try', async (t) => {
    const { server } = await serverAndClient(t);
    await server.stop();
    const program = `
      import { KubeClient } from './core/kube/client.ts';
      import * as system from './core/system.ts';
      const client = new KubeClient({
        connection: { server: '${server.connection.server}', tls: {}, headers: () => ({}), namespace: 'default' },
        clock: system.systemClock, random: system.systemRandom, log: system.silentLogger, userAgent: 'test',
      });
      await client.raw('GET', '/version', { deadlineMs: 400 }).catch((error) => console.log(error.code));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
    assert.equal(stdout, 'TransportError\n');
  });
});

describe('limits', () => {
  test('a silent server ends the call at its deadline', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t, { clock });
    server.intercept = () => true;
    const got = assert.rejects(
      client.get(secrets, REF),
      (error) => error instanceof TransportError && /no answer within 15000 ms/.test(error.message),
    );
    await eventually(() => server.requests.length === 1);
    await clock.advance(15_000);
    await got;
    assert.equal(clock.pending, 0);
  });

  test('a deadline named by the caller of a write is passed on so that the server gives up too', async (t) => {
    const { server, client } = await serverAndClient(t, { clock: new VirtualClock() });
    await client.create(pods, POD, { deadlineMs: 4_000 });
    assert.equal(server.requests[0]?.query.get('timeout'), '4000ms');
  });

  test('an aborted call rejects with the reason, also while it waits for a connection or for its next try', async (t) => {
    const { server, client } = await serverAndClient(t, { maxConnections: 1 });
    server.intercept = (request) => request.path.endsWith('/slow');
    const first = new AbortController();
    const blocking = client.get(pods, { namespace: 'ns', name: 'slow' }, { signal: first.signal });
    await eventually(() => server.requests.length === 1);
    const second = new AbortController();
    const queued = client.create(pods, POD, { signal: second.signal });
    second.abort(new Error('no longer wanted'));
    await assert.rejects(queued, /no longer wanted/);
    first.abort(new Error('enough'));
    await assert.rejects(blocking, /enough/);
    assert.equal((await client.list(pods, { namespace: 'ns' })).items.length, 0);

    server.intercept = (_request, response) => {
      refuse(response, 429, 'TooManyRequests', 'later', { 'retry-after': '9' });
      return true;
    };
    const third = new AbortController();
    const waiting = client.get(pods, REF, { signal: third.signal });
    await eventually(() => server.requests.length === 3);
    third.abort(new Error('stop'));
    await assert.rejects(waiting, /stop/);
  });

  test('a request that found no connection before its deadline says that it was never sent', async (t) => {
    // A listener whose backlog never gets a TLS answer.
    const hole = createServer((socket) => void t.onTestFinished(() => void socket.destroy()));
    await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', resolve));
    const { port } = hole.address() as { port: number };
    const client = new KubeClient({
      connection: { server: `https://127.0.0.1:${port}`, tls: {}, headers: () => ({}), namespace: 'default' },
      clock: systemClock,
      random: seededRandom(),
      log: silentLogger,
      userAgent: 'berth-test/1',
    });
    t.onTestFinished(async () => {
      await client.close();
      hole.close();
    });
    const error = await client.create(pods, POD, { deadlineMs: 100 }).then(unexpected, (caught: unknown) => caught);
    assert.ok(error instanceof TransportError && !error.sent);
  });
});

describe('pod logs', () => {
  test('a log comes in pieces, a refusal is an ApiError, and a reader that leaves ends the connection', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = (request, response) => {
      if (request.query.get('container') === 'none') refuse(response, 400, 'BadRequest', 'container is waiting');
      else response.write('first line\n');
      return true;
    };
    for await (const chunk of client.podLog(REF, { container: 'c', follow: true, tailLines: 10 })) {
      assert.equal(chunk.toString(), 'first line\n');
      break;
    }
    assert.equal(server.requests[0]?.query.toString(), 'container=c&follow=true&tailLines=10');
    await eventually(() => server.connections === 0);
    await assert.rejects(client.podLog(REF, { container: 'none' })[Symbol.asyncIterator]().next(), { code: 400 });
  });

  test('a pod that has no node yet is refused as one whose container has not started', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.intercept = (_request, response) => {
      response.writeHead(204).end();
      return true;
    };
    await assert.rejects(client.podLog(REF, { container: 'c', follow: true })[Symbol.asyncIterator]().next(), {
      name: 'ApiError',
      code: 400,
      message: /is waiting to start: the pod has no node yet/,
    });
  });

  test('a log whose sender stands still in its middle ends at the deadline, one that is followed does not', async (t) => {
    const clock = new VirtualClock();
    const { server, client } = await serverAndClient(t, { clock });
    server.intercept = (_request, response) => {
      response.write('first line\n');
      return true;
    };
    const followed = client.podLog(REF, { container: 'c', follow: true })[Symbol.asyncIterator]();
    await followed.next();
    const whole = client.podLog(REF, { container: 'c' })[Symbol.asyncIterator]();
    assert.equal(String((await whole.next()).value), 'first line\n');
    const ends = assert.rejects(
      whole.next(),
      (error) => error instanceof TransportError && /log: no more of the answer within 15000 ms/.test(error.message),
    );
    const more = followed.next().then(() => 'more');
    await clock.advance(15_000);
    await ends;
    assert.equal(clock.pending, 0);
    await client.close();
    await assert.rejects(more, TransportError);
  });

  test('a reader that stands still stops the sender instead of filling memory', async (t) => {
    const { server, client } = await serverAndClient(t);
    let written = 0;
    let full = false;
    server.intercept = (_request, response) => {
      const chunk = Buffer.alloc(256 * 1024, 'x');
      const more = () => {
        while (written < 200 * 1024 * 1024) {
          written += chunk.length;
          if (!response.write(chunk)) {
            full = true;
            return;
          }
        }
        response.end();
      };
      response.on('drain', () => {
        full = false;
        more();
      });
      more();
      return true;
    };
    const log = client.podLog(REF, { container: 'c', follow: true })[Symbol.asyncIterator]();
    await log.next();
    let seen = -1;
    await eventually(() => {
      const still = full && written === seen;
      seen = written;
      return still;
    });
    assert.ok(written < 64 * 1024 * 1024, `${written} bytes were taken`);
    await log.return?.(undefined);
  });
});
