import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'vitest';
import { StalledClients } from '../../../../api/http/stalled-clients.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** Connection as Node shows it: bytes given to it, and of these the bytes that the system has not taken. */
class Connection {
  bytesWritten = 0;
  bytesRead = 0;
  writableLength = 0;
  isCut = false;

  write(bytes: number): void {
    this.bytesWritten += bytes;
    this.writableLength += bytes;
  }

  take(bytes: number): void {
    this.writableLength -= bytes;
  }

  destroy(): void {
    this.isCut = true;
  }
}

describe('a reader', () => {
  const make = () => {
    const clock = new VirtualClock();
    const cut: ServerResponse[] = [];
    const readers = new StalledClients({ clock, limitMs: 30_000, onCut: (response) => cut.push(response) });
    const socket = new Connection();
    const response = { socket, req: { headers: {} } } as unknown as ServerResponse;
    readers.watch(response, () => assert.fail('it has no body to send'));
    return { clock, cut, readers, socket, response };
  };

  test('that takes nothing of what is there is disconnected, once', async () => {
    const { clock, cut, socket, response } = make();
    socket.write(1000);
    await clock.advance(30_000);
    assert.equal(socket.isCut, false);
    await clock.advance(15_000);
    assert.equal(socket.isCut, true);
    await clock.advance(90_000);
    assert.deepEqual(cut, [response]);
  });

  test('that takes a little now and then stays', async () => {
    const { clock, socket } = make();
    socket.write(1_000_000);
    for (let i = 0; i < 20; i++) {
      await clock.advance(20_000);
      socket.take(1);
    }
    assert.equal(socket.isCut, false);
  });

  test('for whom there is nothing stays, however long it is silent', async () => {
    const { clock, socket } = make();
    socket.write(1000);
    socket.take(1000);
    await clock.advance(3_600_000);
    assert.equal(socket.isCut, false);
    socket.write(1000);
    await clock.advance(20_000);
    assert.equal(socket.isCut, false);
  });

  test('whose answer waits behind another on its connection is not judged by that', async () => {
    const { clock, readers, socket } = make();
    const waiting = { socket: null, req: { headers: {} } } as unknown as ServerResponse;
    readers.watch(waiting, () => assert.fail('it has no body to send'));
    await clock.advance(90_000);
    Object.assign(waiting, { socket });
    socket.write(1);
    await clock.advance(20_000);
    assert.equal(socket.isCut, false);
  });

  test('whose answer is over is watched no longer', async () => {
    const { clock, readers, socket, response } = make();
    socket.write(1000);
    await clock.advance(10_000);
    readers.forget(response);
    await clock.advance(90_000);
    assert.equal(socket.isCut, false);
    readers.stop();
    assert.equal(clock.pending, 0);
  });
});

describe('a writer', () => {
  const make = () => {
    const clock = new VirtualClock();
    const clients = new StalledClients({ clock, limitMs: 30_000, onCut: () => assert.fail('it has nothing to read') });
    const socket = new Connection();
    const req = { headers: { 'content-length': '100' }, complete: false, readableLength: 0 };
    const silent: string[] = [];
    clients.watch({ socket, req } as unknown as ServerResponse, () => silent.push('silent'));
    return { clock, socket, req, silent };
  };

  test('that sends nothing of its body is told, once', async () => {
    const { clock, silent } = make();
    await clock.advance(30_000);
    assert.deepEqual(silent, []);
    await clock.advance(15_000);
    assert.deepEqual(silent, ['silent']);
    await clock.advance(90_000);
    assert.deepEqual(silent, ['silent']);
  });

  test('that sends a byte now and then stays', async () => {
    const { clock, socket, silent } = make();
    for (let i = 0; i < 20; i++) {
      await clock.advance(20_000);
      socket.bytesRead += 1;
    }
    assert.deepEqual(silent, []);
  });

  test('whose bytes the server has not read stays, however long that takes', async () => {
    const { clock, req, silent } = make();
    req.readableLength = 10;
    await clock.advance(3_600_000);
    req.readableLength = 0;
    await clock.advance(20_000);
    assert.deepEqual(silent, []);
  });

  test('whose body has come is awaited no longer', async () => {
    const { clock, req, silent } = make();
    req.complete = true;
    await clock.advance(3_600_000);
    assert.deepEqual(silent, []);
  });
});
