import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { test } from 'vitest';
import { WebSocket } from 'ws';
import type { ServerClient } from '../../../../cli/server/client.ts';
import { commandSocket } from '../../../../cli/server/command-socket.ts';
import { EnterError } from '../../../../core/enter/client.ts';
import { encodeFrame, encodeJson } from '../../../../core/enter/frames.ts';
import { TransportError } from '../../../../core/kube/errors.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A WebSocket whose other end is played by the test. */
class FakeSocket extends EventEmitter {
  readonly readyState = WebSocket.OPEN;
  readonly bufferedAmount = 0;
  isPaused = true;
  pause = () => {
    this.isPaused = true;
  };
  resume = () => {
    this.isPaused = false;
  };
  send = (_: unknown, done: () => void) => done();
  close = () => {};
  terminate = () => {};
}

async function opened() {
  const socket = new FakeSocket();
  const client = { socket: async () => socket } as unknown as ServerClient;
  const clock = new VirtualClock();
  const options = { query: {}, session: 'notes', clock, signal: new AbortController().signal };
  const opening = commandSocket(client, '/attach', options);
  await setImmediate();
  socket.emit('message', encodeJson('ready', { next: 0 }));
  return { socket, clock, frames: await opening };
}

test('output that nobody takes is read up to where the command waits: a socket that stands still would be closed', async () => {
  const { socket, frames } = await opened();
  const output = encodeFrame('output', Buffer.alloc(65_536));
  for (let bytes = 0; bytes < 8 * 2 ** 20; bytes += 65_536) socket.emit('message', output);
  assert.equal(socket.isPaused, false);
  for (let bytes = 0; bytes < 2 * 2 ** 20; bytes += 65_536) socket.emit('message', output);
  assert.equal(socket.isPaused, true);
  frames.close();
});

test('the reason of a close is the refusal of the session in its own words, and otherwise a lost connection', async () => {
  for (const [reason, expected] of [
    [
      'Suspended: Session notes is being suspended.',
      new EnterError({ code: 'Suspended', message: 'session notes is being suspended' }),
    ],
    ['ShuttingDown: The server is being stopped.', TransportError],
    ['', TransportError],
  ] as const) {
    const { socket, frames } = await opened();
    socket.emit('close', 1011, Buffer.from(reason));
    const next = frames[Symbol.asyncIterator]().next();
    await assert.rejects(next, expected);
  }
});

test('pings are signs of life, and a server without any is given up', async () => {
  const { socket, clock, frames } = await opened();
  const next = frames[Symbol.asyncIterator]().next();
  let isLost = false;
  next.catch(() => {
    isLost = true;
  });
  for (let pings = 0; pings < 4; pings += 1) {
    await clock.advance(15_000);
    socket.emit('ping');
  }
  assert.equal(isLost, false);
  const lost = assert.rejects(next, /no sign of life/);
  await clock.advance(30_000);
  await lost;
});
