import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, type TestContext, test } from 'vitest';
import type { WebSocket } from 'ws';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { openPodStream } from '../../../core/kube/stream.ts';
import type { AttachOptions } from '../../../core/kube/types.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { serverAndClient } from './support.ts';

const REF = { namespace: 'ns', name: 'a' };
const ALL = { container: 'c', stdin: true, stdout: true, stderr: true };

const message = (channel: number, data: string | Buffer) => Buffer.concat([Buffer.from([channel]), Buffer.from(data)]);

/** A server that accepts streams, the messages it got, and a client's stream to it. */
async function attached(t: TestContext, options: Partial<AttachOptions> = {}, clock = systemClock) {
  const { server, client } = await serverAndClient(t, { clock });
  const sockets: WebSocket[] = [];
  const received: Buffer[] = [];
  server.onStream = (socket) => {
    sockets.push(socket);
    socket.on('message', (data) => received.push(data as Buffer));
  };
  const stream = await client.attach(REF, { ...ALL, ...options });
  t.onTestFinished(() => stream.close());
  const socket = sockets[0]!;
  return { server, client, stream, socket, received };
}

describe('a stream that is paused', () => {
  test('delivers nothing until it is resumed, then all in order, and keeps its connection though no ping is answered', async (t) => {
    const clock = new VirtualClock();
    const out: string[] = [];
    const { stream, socket } = await attached(t, { onStdout: (chunk) => out.push(String(chunk)) }, clock);
    stream.pause();
    for (let i = 0; i < 20; i++) socket.send(message(1, `${i};`.padEnd(60_000, '.')));
    await new Promise<void>((resolve) => socket.send(message(1, 'last'), () => resolve()));
    await clock.advance(300_000);
    const early = out.length;
    stream.resume();
    await eventually(() => out.at(-1) === 'last');
    assert.deepEqual(
      out.map((text) => Number.parseInt(text, 10)).slice(0, 20),
      Array.from({ length: 20 }, (_, i) => i),
    );
    // What had been read when the pause began is delivered.
    assert.ok(early <= 4, `${early} of 21 messages came while it was paused`);
  });

  test('can be closed at once', async (t) => {
    const { stream, socket } = await attached(t);
    stream.pause();
    socket.send(message(1, 'x'.repeat(60_000)));
    stream.close();
    assert.equal((await stream.closed).by, 'local');
  });
});

describe('attach and exec', () => {
  test('an exec carries its command, delivers both outputs and ends with the exit code', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.onStream = (socket) => {
      socket.send(message(1, 'out'));
      socket.send(message(2, 'err'));
      const details = { causes: [{ reason: 'ExitCode', message: '3' }] };
      socket.send(
        message(3, JSON.stringify({ status: 'Failure', reason: 'NonZeroExitCode', message: 'exit 3', details })),
      );
      socket.close(1000);
    };
    const out: string[] = [];
    const stream = await client.exec(REF, {
      ...ALL,
      command: ['sh', '-c', 'a b&c'],
      onStdout: (chunk) => out.push(`1${chunk}`),
      onStderr: (chunk) => out.push(`2${chunk}`),
    });
    assert.deepEqual(await stream.closed, { by: 'remote', exitCode: 3, message: 'exit 3' });
    assert.deepEqual(out, ['1out', '2err']);
    const request = server.requests[0]!;
    assert.equal(request.path, '/api/v1/namespaces/ns/pods/a/exec');
    assert.deepEqual(request.query.getAll('command'), ['sh', '-c', 'a b&c']);
    assert.equal(request.query.get('stdin'), 'true');
    assert.equal(request.headers.authorization, 'Bearer test-token');
    assert.equal(request.headers['sec-websocket-protocol'], 'v5.channel.k8s.io');
  });

  test('a Status of success is exit code 0 of an exec and nothing known of an attached process', async (t) => {
    const { server, client } = await serverAndClient(t);
    server.onStream = (socket) => {
      socket.send(message(3, '{"metadata":{},"status":"Success"}'));
      socket.close(1000);
    };
    const exec = await client.exec(REF, { ...ALL, command: ['true'] });
    assert.deepEqual(await exec.closed, { by: 'remote', exitCode: 0 });
    const attach = await client.attach(REF, ALL);
    assert.deepEqual(await attach.closed, { by: 'remote' });
  });

  test('a failure that comes after the upgrade is in the end with its message', async (t) => {
    const { socket, stream } = await attached(t);
    socket.send(message(3, '{"status":"Failure","code":500,"message":"container not found (\\"c\\")"}'));
    socket.close(1000);
    assert.deepEqual(await stream.closed, { by: 'remote', message: 'container not found ("c")' });
  });

  for (const [status, body, reason, text] of [
    [
      400,
      '{"kind":"Status","code":400,"reason":"BadRequest","message":"container c is not valid"}',
      'BadRequest',
      /^container c/,
    ],
    [404, 'pod does not exist', 'NotFound', /HTTP 404: pod does not exist$/],
    [500, '', 'InternalError', /HTTP 500$/],
  ] as const) {
    test(`an upgrade that is answered with ${status} is an ApiError with its message`, async (t) => {
      const { server, client } = await serverAndClient(t);
      server.refuseUpgrade = { status, body };
      await assert.rejects(client.attach(REF, ALL), (error) => {
        return (
          error instanceof ApiError && error.code === status && error.reason === reason && text.test(error.message)
        );
      });
    });
  }

  test('a server that does not answer the upgrade is given up after the open timeout, or when aborted', async (t) => {
    const hole = createServer((socket) => {
      socket.on('error', () => {});
      t.onTestFinished(() => void socket.destroy());
    });
    await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', resolve));
    t.onTestFinished(() => void hole.close());
    const { port } = hole.address() as { port: number };
    const clock = new VirtualClock();
    const connection = { server: `http://127.0.0.1:${port}`, tls: {}, headers: () => ({}), namespace: 'ns' };
    const open = (options: Partial<AttachOptions>) =>
      openPodStream('/attach', { ...ALL, ...options }, { connection, clock, log: silentLogger, userAgent: 'test' });

    const late = assert.rejects(
      open({ openTimeoutMs: 700 }),
      (error) => error instanceof TransportError && /not open within 700 ms/.test(error.message),
    );
    await eventually(() => clock.pending === 1);
    await clock.advance(700);
    await late;

    const abort = new AbortController();
    const aborted = assert.rejects(open({ signal: abort.signal }), /no longer wanted/);
    await eventually(() => clock.pending === 1);
    abort.abort(new Error('no longer wanted'));
    await aborted;
    await assert.rejects(open({ signal: abort.signal }), /no longer wanted/);
    assert.equal(clock.pending, 0);
  });

  test('nothing listening is a TransportError', async (t) => {
    const { server, client } = await serverAndClient(t);
    await server.stop();
    await assert.rejects(client.attach(REF, ALL), TransportError);
  });

  test('stdin arrives in order in pieces on its channel, and its end is told', async (t) => {
    const { received, stream } = await attached(t);
    const large = Buffer.alloc(100_000, 'x');
    await stream.write('hello\n');
    await stream.write(large);
    stream.closeStdin();
    await eventually(() => received.at(-1)?.[0] === 255);
    assert.deepEqual(received.at(-1), Buffer.from([255, 0]));
    const stdin = received.slice(0, -1);
    assert.ok(stdin.every((part) => part[0] === 0));
    assert.deepEqual(
      Buffer.concat(stdin.map((part) => part.subarray(1))),
      Buffer.concat([Buffer.from('hello\n'), large]),
    );
  });

  test('a writer waits while the other side does not read, and goes on when it does', async (t) => {
    const { received, socket, stream } = await attached(t);
    socket.pause();
    const piece = Buffer.alloc(1024 * 1024, 'x');
    let written = 0;
    const writing = (async () => {
      for (; written < 64; written++) await stream.write(piece);
    })();
    let seen = -1;
    await eventually(() => {
      const still = written === seen;
      seen = written;
      return still && written > 0;
    });
    assert.ok(written < 64, 'everything was taken at once');
    socket.resume();
    await writing;
    await eventually(() => received.reduce((sum, part) => sum + part.length - 1, 0) === 64 * 1024 * 1024);
  });

  test('output is drained to its end whatever the consumer does', async (t) => {
    let bytes = 0;
    const { socket, stream } = await attached(t, {
      onStdout: (chunk) => {
        bytes += chunk.length;
        throw new Error('consumer is broken');
      },
    });
    for (let i = 0; i < 500; i++) socket.send(message(1, Buffer.alloc(32 * 1024)));
    socket.send(message(3, '{"status":"Success"}'));
    socket.close(1000);
    assert.deepEqual(await stream.closed, { by: 'remote' });
    assert.equal(bytes, 500 * 32 * 1024);
  });

  test('a peer that does not answer pings is given up, one that does is kept', async (t) => {
    const clock = new VirtualClock();
    let answers = 0;
    const { socket, stream } = await attached(t, { onStdout: () => answers++ }, clock);
    // Sent after the pong: when it is seen, the pong has been seen.
    socket.on('ping', () => socket.send(message(1, 'after the pong')));
    for (let i = 1; i <= 3; i++) {
      await clock.advance(30_000);
      await eventually(() => answers === i);
    }
    assert.equal(socket.readyState, socket.OPEN);
    socket.pause();
    await clock.advance(60_000);
    const end = await stream.closed;
    assert.equal(end.by, 'connection');
    assert.match(end.message ?? '', /no answer to a ping within 30000 ms/);
  });

  test('a connection that is cut ends the stream by connection, and a write after it is refused', async (t) => {
    const { server, stream } = await attached(t);
    server.cut();
    assert.equal((await stream.closed).by, 'connection');
    await assert.rejects(stream.write('x'), (error) => error instanceof TransportError && !error.sent);
    stream.closeStdin();
    stream.close();
  });

  test('a close or an abort of ours ends the stream by local', async (t) => {
    const { stream } = await attached(t);
    stream.close();
    assert.equal((await stream.closed).by, 'local');
    const abort = new AbortController();
    const second = await attached(t, { signal: abort.signal });
    abort.abort(new Error('enough'));
    assert.equal((await second.stream.closed).by, 'local');
  });

  test('a close that the other side does not answer cuts the connection', async (t) => {
    const clock = new VirtualClock();
    const { socket, stream } = await attached(t, {}, clock);
    socket.pause();
    stream.close();
    await clock.advance(2_000);
    assert.equal((await stream.closed).by, 'local');
  });
});
