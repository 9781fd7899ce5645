import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, test } from 'vitest';
import { systemRandom as random } from '../../../../core/system.ts';
import { CommandLog } from '../../../../runner/commands/log.ts';
import { Room } from '../../../../runner/commands/room.ts';
import type { OutputRecord, OutputStream } from '../../../../runner/commands/segment.ts';
import { seededRandom } from '../../../support/random.ts';

const directory = mkdtempSync(join(tmpdir(), 'berth-log-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const MIB = 1024 * 1024;

function logWith(options: { drops?: boolean; limit?: number; room?: Room; directory?: string } = {}): CommandLog {
  return new CommandLog({ directory, room: new Room(128 * MIB), drops: false, random, ...options });
}

/** Reads everything from a position on, and checks that no byte is missing or told twice. */
async function readFrom(log: CommandLog, from: number): Promise<OutputRecord[]> {
  const all: OutputRecord[] = [];
  for (let at = from; at < log.next; ) {
    const records = (await log.read(at)) ?? assert.fail(`nothing at ${at}`);
    assert.ok(records.length > 0);
    for (const { position, bytes } of records) {
      assert.equal(position, at);
      at += bytes.length;
    }
    all.push(...records);
  }
  return all;
}

/** Bytes of a stream. */
function of(stream: OutputStream, records: readonly OutputRecord[]): Buffer {
  return Buffer.concat(records.filter((each) => each.stream === stream).map(({ bytes }) => bytes));
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => {
    settled = true;
  });
  for (let i = 0; i < 5; i++) await setImmediate();
  return settled;
}

test('a log gives each byte of both streams once and in order, from any position, however it was appended', async () => {
  for (const seed of [1, 2, 3]) {
    const dice = seededRandom(seed);
    const log = logWith({ limit: 64 * MIB });
    const written: Record<OutputStream, Buffer[]> = { 1: [], 2: [] };
    const total: OutputStream[] = [];
    for (let i = 0; i < 150; i++) {
      const stream = dice.uniform() < 0.5 ? 1 : 2;
      const most = dice.uniform() < 0.1 ? 200_000 : 300;
      const bytes = Buffer.alloc(Math.floor(dice.uniform() * most), i);
      written[stream].push(bytes);
      total.push(stream);
      await log.append(stream, bytes);
    }
    const all = await readFrom(log, 0);
    assert.ok(of(1, all).equals(Buffer.concat(written[1])));
    assert.ok(of(2, all).equals(Buffer.concat(written[2])));
    const whole = Buffer.concat(all.map(({ bytes }) => bytes));
    for (let i = 0; i < 20; i++) {
      const from = Math.floor(dice.uniform() * log.next);
      const rest = Buffer.concat((await readFrom(log, from)).map(({ bytes }) => bytes));
      assert.ok(rest.equals(whole.subarray(from)));
    }
    await log.close();
  }
});

test('the files of a log have no name', async () => {
  const log = logWith();
  await log.append(1, Buffer.alloc(3 * MIB));
  assert.deepEqual(readdirSync(directory), []);
  await log.close();
});

test('a log that waits has no room from its limit on, until its reader has acknowledged output, and loses nothing', async () => {
  const log = logWith({ limit: 2 * MIB });
  await log.append(1, Buffer.alloc(2 * MIB, 1));
  const room = log.whenRoom();
  assert.equal(await isSettled(room), false);
  assert.equal(log.first, 0);
  log.acknowledge(1.5 * MIB);
  await room;
  assert.ok(log.first > 0 && log.first <= 1.5 * MIB);
  assert.equal(Buffer.concat((await readFrom(log, 1.5 * MIB)).map(({ bytes }) => bytes)).length, 0.5 * MIB);
  await log.close();
});

test('a log that drops keeps its newest bytes and says where they begin', async () => {
  const log = logWith({ drops: true, limit: 3 * MIB });
  for (let i = 0; i < 10; i++) {
    await log.whenRoom();
    await log.append(1, Buffer.alloc(MIB, i));
  }
  assert.equal(log.next, 10 * MIB);
  assert.ok(log.bytes <= 3 * MIB, `${log.bytes}`);
  assert.ok(log.first > 6.9 * MIB && log.first < 8.1 * MIB, `${log.first}`);
  assert.equal(await log.read(0), undefined);
  const kept = Buffer.concat((await readFrom(log, log.first)).map(({ bytes }) => bytes));
  assert.equal(kept.length, log.next - log.first);
  assert.equal(kept.at(-1), 9);
  await log.close();
});

test('logs together keep to the room of the session: the largest that may drops its oldest bytes, and a waiting one waits', async () => {
  const room = new Room(6 * MIB);
  const large = logWith({ drops: true, room });
  const waiting = logWith({ room });
  await large.append(1, Buffer.alloc(5.5 * MIB));
  while (await isSettled(waiting.whenRoom())) await waiting.append(1, Buffer.alloc(MIB / 16));
  assert.ok(large.first > 0 && !large.giveUp(), 'the file that is written stays');
  assert.equal(waiting.first, 0);
  const blocked = waiting.whenRoom();
  await large.close();
  await blocked;
  await waiting.close();
});

test('on a full disk a waiting log keeps what it was given and waits for its reader; then it goes on', async () => {
  const missing = join(directory, 'missing');
  const log = logWith({ directory: missing });
  await log.append(2, Buffer.from('no space left on device'));
  const room = log.whenRoom();
  assert.equal(await isSettled(room), false);
  assert.equal(of(2, await readFrom(log, 0)).toString(), 'no space left on device');
  mkdirSync(missing);
  log.acknowledge(log.next);
  await room;
  await log.append(1, Buffer.from('more'));
  assert.equal(of(1, await readFrom(log, 23)).toString(), 'more');
  await log.close();
});

test('on a full disk a log that drops keeps its newest record and never waits', async () => {
  const log = logWith({ drops: true, directory: join(directory, 'nowhere') });
  for (const text of ['one', 'two', 'three']) {
    await log.whenRoom();
    await log.append(1, Buffer.from(text));
  }
  assert.deepEqual([log.first, log.next], [6, 11]);
  assert.equal(of(1, await readFrom(log, 6)).toString(), 'three');
  await log.close();
});

test('bytes that were given up while they were read are told as such, and those of others are right', async () => {
  const log = logWith({ drops: true, limit: 2 * MIB });
  await log.append(1, Buffer.alloc(2 * MIB, 7));
  const reads = Promise.all(Array.from({ length: 20 }, (_, i) => log.read(i * 1000)));
  await log.append(1, Buffer.alloc(4 * MIB, 8));
  for (const records of await reads) {
    if (records) assert.ok(records.every(({ bytes }) => bytes.every((byte) => byte === 7)));
  }
  await log.close();
  assert.equal(await log.read(0), undefined);
});
