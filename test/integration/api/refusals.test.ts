import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { problemSchema } from '../../../api/problems/problems.ts';
import { VERSION } from '../../../core/program/version.ts';
import { eventually } from '../../support/eventually.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';

interface RawReply {
  status: number;
  headers: Headers;
  problem: ReturnType<typeof problemSchema.parse>;
}

/** Every test sends bytes that no HTTP client would send. */
describe('a request that no handler sees', () => {
  let api: ApiCluster;
  let token: string;
  beforeAll(async () => {
    api = await ApiCluster.start();
    ({ token } = await api.user(EVERYTHING));
  });
  afterAll(() => api.close());

  /** Sends the bytes and reads until the server closes the connection, as it must after such a request. */
  function exchange(bytes: string, { url } = api): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      socket.once('error', reject);
      socket.once('close', () => resolve(text));
      socket.write(bytes);
    });
  }

  /** Parses the last answer of a connection, which must be a problem. */
  function parse(text: string): RawReply {
    const [head = '', body = ''] = text
      .slice(text.search(/HTTP\/1\.1 \d+ (?![\s\S]*HTTP\/1\.1 \d+ )/))
      .split('\r\n\r\n');
    const [first = '', ...lines] = head.split('\r\n');
    const headers = new Headers(lines.map((line) => line.split(/: ?/, 2) as [string, string]));
    assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/, text);
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('berth-version'), VERSION);
    assert.equal(Number(headers.get('content-length')), Buffer.byteLength(body));
    const problem = problemSchema.parse(JSON.parse(body));
    const status = Number(first.split(' ')[1]);
    assert.equal(problem.status, status);
    return { status, headers, problem };
  }

  const refused = async (bytes: string) => {
    const { status, problem } = parse(await exchange(bytes));
    return [status, problem.code];
  };
  const head = (line: string, ...headers: string[]) => `${[line, 'Host: berth', ...headers].join('\r\n')}\r\n\r\n`;
  const post = (...headers: string[]) =>
    head(`POST ${SESSIONS} HTTP/1.1`, `Authorization: Bearer ${token}`, 'Content-Type: application/json', ...headers);

  const CASES: [string, () => string, number, string][] = [
    ['bytes that are no HTTP', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'MalformedRequest'],
    ['a version that there is not', () => 'GET / HTTP/9\r\n\r\n', 400, 'MalformedRequest'],
    ['a header without a colon', () => head('GET /healthz HTTP/1.1', 'nonsense'), 400, 'MalformedRequest'],
    ['no header Host', () => 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'MalformedRequest'],
    ['a chunk without a length', () => `${post('Transfer-Encoding: chunked')}zz\r\n{}`, 400, 'MalformedRequest'],
    ['headers above 16 KiB', () => head('GET /healthz HTTP/1.1', `X: ${'x'.repeat(200_000)}`), 431, 'HeadersTooLarge'],
    ['an expectation', () => `${post('Expect: wonders', 'Content-Length: 2')}{}`, 417, 'ExpectationFailed'],
    ['a path that cannot be decoded', () => head('GET /v1/%zz HTTP/1.1', 'Connection: close'), 400, 'InvalidParameter'],
    [
      'a part of the path that is longer than any name',
      () => head(`GET ${SESSIONS}/${'a'.repeat(3000)} HTTP/1.1`, 'Connection: close'),
      400,
      'InvalidParameter',
    ],
    ['a tunnel', () => head('CONNECT example.com:443 HTTP/1.1'), 405, 'MethodNotAllowed'],
  ];
  for (const [what, bytes, status, code] of CASES) {
    test(`${what} is answered ${status} ${code}`, async () => {
      assert.deepEqual(await refused(bytes()), [status, code]);
    });
  }

  test('every method that a page does not take, known to Node or not, is answered 405 with those that it takes', async () => {
    const pages = {
      [SESSIONS]: ['GET', 'HEAD', 'POST'],
      [`${SESSIONS}/some`]: ['DELETE', 'GET', 'HEAD'],
      '/healthz': ['GET', 'HEAD'],
      '/metrics': ['GET', 'HEAD'],
      '/openapi.json': ['GET', 'HEAD'],
    };
    for (const [path, taken] of Object.entries(pages)) {
      for (const method of [...METHODS, 'BREW', 'get']) {
        if (taken.includes(method) || method === 'CONNECT') continue;
        // The body is of no interest, even where it is broken.
        const { status, headers, problem } = parse(
          await exchange(`${head(`${method} ${path} HTTP/1.1`, 'Connection: close', 'Content-Length: 1')}{`),
        );
        assert.deepEqual([status, problem.code], [405, 'MethodNotAllowed'], `${method} ${path}`);
        assert.deepEqual(headers.get('allow')?.split(', ').sort(), taken, `${method} ${path}`);
      }
    }
    for (const method of ['GET', 'QUERY', 'BREW']) {
      assert.deepEqual(await refused(head(`${method} /nowhere HTTP/1.1`, 'Connection: close')), [404, 'NotFound']);
    }
  });

  test('a compressed body is answered 415 and the header named, whatever is in it', async () => {
    for (const encoding of ['gzip', 'br', 'identity, gzip']) {
      const headers = { 'content-encoding': encoding };
      const answer = await api.call('POST', SESSIONS, { token, body: {}, headers });
      assert.deepEqual([answer.status, answer.problem.code], [415, 'UnsupportedMediaType'], encoding);
      assert.equal(answer.problem.errors?.[0]?.field, 'Content-Encoding');
    }
    const headers = { 'content-encoding': 'identity' };
    assert.equal((await api.call('POST', SESSIONS, { token, body: {}, headers })).status, 201);
  });

  test('a head that does not come within 30 s is answered 408 soon after, and a body of which no byte comes', async () => {
    const other = await ApiCluster.start({ BERTH_API_STALL_TIMEOUT: '1s' });
    try {
      const { server } = other;
      // Node looks every 30 s unless it is told otherwise, from the start of a server on.
      assert.deepEqual([server.requestTimeout, server.headersTimeout], [0, 30_000]);
      server.headersTimeout = 500;
      const whole = head('GET /healthz HTTP/1.1');
      const own = await other.user(EVERYTHING);
      const late = [
        `${post('Content-Length: 100').replace(token, own.token)}{`,
        `${post('Transfer-Encoding: chunked').replace(token, own.token)}1\r\n{\r\n`,
        post().slice(0, 40),
        '',
        `${whole}GET /hea`,
      ];
      const answers: string[] = [];
      for (const bytes of late) void exchange(bytes, other).then((text) => answers.push(text));
      await eventually(() => answers.length === late.length, { timeoutMs: 20_000, what: 'all are answered' });
      for (const text of answers) {
        const { status, problem } = parse(text);
        assert.deepEqual([status, problem.code], [408, 'RequestTimeout']);
      }
      assert.equal(answers.filter((text) => text.startsWith('HTTP/1.1 200 OK\r\n')).length, 1);
    } finally {
      await other.close();
    }
  });

  test('an answer that has begun is not mixed with the refusal of what follows it', async () => {
    await api.cluster.create('followed', { agent: { command: ['cat'] } });
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.write(head(`GET ${SESSIONS}/followed/events HTTP/1.1`, `Authorization: Bearer ${token}`));
    await eventually(() => text.includes(': berth'), { what: 'the events begin' });
    socket.write('garbage\r\n\r\n');
    await eventually(() => socket.closed, { what: 'the connection is closed' });
    assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1, text);
  });
});
