import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FRAMES, MAX_PORT_CONNECTIONS, PORT_WINDOW } from '../../../../core/enter/frames.ts';
import { eventually } from '../../../support/eventually.ts';
import { noHelper } from '../../../support/helper-run.ts';
import { echo, PortedPod } from '../../../support/ported.ts';
import { skipIf } from '../../../support/requires.ts';

const MB = 1_000_000;
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
/** The error that ends a connection. */
const failure = async (connection: Duplex): Promise<{ code?: string; message: string }> =>
  (await once(connection, 'error'))[0];

describe('connections to ports of a session', skipIf(noHelper), () => {
  test('fifty at once carry 200 kB each way over one helper, each its own', async () => {
    await using pod = await PortedPod.start();
    const port = await pod.serve(echo);
    const ports = await pod.open();
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const connection = ports.connect(port);
        const content = randomBytes(200_000);
        connection.end(content);
        expect(sha256(await buffer(connection))).toBe(sha256(content));
      }),
    );
    expect(pod.helpers).toHaveLength(1);
  });

  test('10 MB arrive whole each way', async () => {
    await using pod = await PortedPod.start();
    const content = randomBytes(10 * MB);
    const digests: string[] = [];
    const down = await pod.serve((socket) => socket.end(content));
    const up = await pod.serve(async (socket) => {
      digests.push(sha256(await buffer(socket)));
      socket.end('taken');
    });
    const ports = await pod.open();
    const reader = ports.connect(down);
    reader.end();
    expect(sha256(await buffer(reader))).toBe(sha256(content));
    const writer = ports.connect(up);
    writer.end(content);
    expect(await text(writer)).toBe('taken');
    expect(digests).toEqual([sha256(content)]);
  });

  test('one whose server does not read, and one whose client does not, hold no other and no more than their windows', async () => {
    await using pod = await PortedPod.start();
    const held: Socket[] = [];
    const deaf = await pod.serve((socket) => void held.push(socket.pause()));
    let poured = 0;
    const pours = await pod.serve((socket) => {
      const pour = () => {
        while (socket.write(Buffer.alloc(65_536))) poured += 65_536;
      };
      socket.on('drain', pour);
      pour();
    });
    const echoes = await pod.serve(echo);
    const ports = await pod.open();
    const stuck = ports.connect(deaf);
    await stuck.connected;
    // More than the kernel takes of it.
    const huge = randomBytes(30 * MB);
    stuck.end(huge);
    const unread = ports.connect(pours);
    await unread.connected;
    for (let count = 0; count < 20; count += 1) {
      const other = ports.connect(echoes);
      other.end('hello');
      expect(await text(other)).toBe('hello');
    }
    expect(unread.readableLength).toBeLessThanOrEqual(PORT_WINDOW);
    expect(poured).toBeLessThan(30 * MB);
    // The server that reads again gets every byte.
    const got = buffer(held[0] as Socket);
    expect(sha256(await got)).toBe(sha256(huge));
    unread.destroy();
  });

  test('each half is closed by itself', async () => {
    await using pod = await PortedPod.start();
    const first = await pod.serve(async (socket) => {
      socket.end('the server is done');
      received.push(await text(socket));
    });
    const received: string[] = [];
    const second = await pod.serve(async (socket) => {
      const all = await text(socket);
      socket.end(`the client sent ${all}`);
    });
    const ports = await pod.open();
    const one = ports.connect(first);
    expect(await text(one)).toBe('the server is done');
    one.end('and the client goes on');
    await eventually(() => received.length === 1, { what: 'the rest' });
    expect(received).toEqual(['and the client goes on']);
    const two = ports.connect(second);
    two.end('all');
    expect(await text(two)).toBe('the client sent all');
  });

  test('one whose halves are both closed ends when the server has every byte, and not before', async () => {
    await using pod = await PortedPod.start();
    const received = Promise.withResolvers<Buffer>();
    const port = await pod.serve((socket) => {
      socket.end('bye');
      buffer(socket).then(received.resolve, received.reject);
    });
    const ports = await pod.open();
    const connection = ports.connect(port);
    expect(await text(connection)).toBe('bye');
    pod.helpers[0]?.kill('SIGSTOP');
    const content = randomBytes(100_000);
    connection.end(content);
    await once(connection, 'finish');
    await setImmediate();
    expect(connection.closed).toBe(false);
    const closed = once(connection, 'close').then(() => ports.close());
    pod.helpers[0]?.kill('SIGCONT');
    await closed;
    expect(sha256(await received.promise)).toBe(sha256(content));
  });

  test('a port where nothing listens is refused, and one on ::1 alone is reached', async () => {
    await using pod = await PortedPod.start();
    const port = await pod.serve(() => {}, { host: '::1' });
    const ports = await pod.open();
    await ports.connect(port).connected;
    const free = await pod.serve(() => {});
    await expect(ports.connect(free).connected).resolves.toBeUndefined();
    const nobody = ports.connect(1);
    expect(await failure(nobody)).toMatchObject({
      code: 'PortRefused',
      message: 'port 1 of session notes cannot be reached: Connection refused',
    });
    await expect(nobody.connected).rejects.toThrow('Connection refused');
  });

  test('a server that resets ends its connection with an error, and a client that leaves resets the server’s', async () => {
    await using pod = await PortedPod.start();
    const sockets: Socket[] = [];
    const port = await pod.serve((socket) => void sockets.push(socket));
    const ports = await pod.open();
    const reset = ports.connect(port);
    const failed = failure(reset);
    await eventually(() => sockets.length === 1, { what: 'the connection' });
    sockets[0]?.resetAndDestroy();
    expect(await failed).toMatchObject({ code: 'PortFailed', message: expect.stringContaining('reset by peer') });
    const left = ports.connect(port);
    await eventually(() => sockets.length === 2, { what: 'the second connection' });
    const seen = failure(sockets[1] as Socket);
    left.write('half a request');
    sockets[1]?.once('data', () => left.destroy());
    expect(await seen).toMatchObject({ code: 'ECONNRESET' });
  });

  test('the end of the helper fails all connections, and resets them for their servers', async () => {
    await using pod = await PortedPod.start();
    const seen: Promise<{ code?: string }>[] = [];
    const port = await pod.serve((socket) => void seen.push(failure(socket)));
    const ports = await pod.open();
    const connections = [ports.connect(port), ports.connect(port)];
    const failed = connections.map(failure);
    await Promise.all(connections.map(({ connected }) => connected));
    await eventually(() => seen.length === 2, { what: 'both connections' });
    pod.helpers[0]?.kill('SIGKILL');
    for (const error of await Promise.all(failed)) expect(error.message).toContain('was lost');
    for (const error of await Promise.all(seen)) expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(ports.hasRoom).toBe(false);
    expect(await failure(ports.connect(port))).toMatchObject({ message: expect.stringContaining('was lost') });
  });

  test('128 are open at once, and one that ends makes room', async () => {
    await using pod = await PortedPod.start();
    const port = await pod.serve(echo);
    const ports = await pod.open();
    const all = Array.from({ length: MAX_PORT_CONNECTIONS }, () => ports.connect(port));
    await Promise.all(all.map(({ connected }) => connected));
    expect(ports.hasRoom).toBe(false);
    expect(await failure(ports.connect(port))).toMatchObject({ message: expect.stringContaining('too many') });
    all[0]?.end();
    all[0]?.resume();
    await eventually(() => ports.hasRoom, { what: 'room' });
    await ports.connect(port).connected;
  });

  test('bytes keep the session from being idle, connections without any do not', async () => {
    await using pod = await PortedPod.start();
    const port = await pod.serve(echo);
    const ports = await pod.open();
    const connection = ports.connect(port);
    await connection.connected;
    expect(pod.ports.idleMs).toBeUndefined();
    connection.write('x');
    await eventually(() => pod.ports.idleMs === 0, { what: 'activity' });
    await pod.clock.advance(5000);
    expect(pod.ports.idleMs).toBe(5000);
    connection.end();
    connection.resume();
  });
});

test('the helper has the letters and limits of the frames', () => {
  const header = readFileSync(join(import.meta.dirname, '../../../../runner/helper/frames.h'), 'utf8');
  const letters = Object.fromEntries(
    [...header.matchAll(/#define ([A-Z_]+) '(.)'/g)].map(([, name, letter]) => [
      (name as string).toLowerCase().replace(/_(.)/g, (_, char: string) => char.toUpperCase()),
      letter,
    ]),
  );
  expect(Object.keys(letters)).toContain('halfClose');
  expect(FRAMES).toMatchObject(letters);
  expect(header).toContain(`PORT_WINDOW = ${PORT_WINDOW}, MAX_PORT_CONNECTIONS = ${MAX_PORT_CONNECTIONS} `);
});
