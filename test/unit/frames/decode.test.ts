import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { FrameDecoder, type FrameEvent } from '../../../core/frames/decode.ts';
import { frameText, readyText } from '../../../core/frames/encode.ts';
import { packLog } from '../../../core/frames/log-text.ts';
import type { Ready } from '../../../core/frames/messages.ts';
import { packMessage } from '../../../core/frames/wire.ts';
import { systemRandom } from '../../../core/system.ts';
import {
  address,
  boot,
  collecting,
  cutPoints,
  expected,
  fault,
  junk,
  keys,
  plain,
  send,
  sent,
  split,
  spoil,
  up,
} from './support.ts';

function decoder(maxMessageBytes?: number): FrameDecoder {
  const made = new FrameDecoder({ ...(maxMessageBytes && { maxMessageBytes }) });
  made.setChannel({ ...address, key: keys.up });
  return made;
}

const frames = (events: FrameEvent[]) =>
  events.flatMap((event) => (event.type === 'frame' ? [plain(event.frame)] : []));
const gaps = (events: FrameEvent[]) =>
  events.flatMap((event) => (event.type === 'gap' ? [[event.from, event.to]] : []));
const pong = { n: 1, incarnation: 3, idleMs: 5, suspended: false };
const ready: Ready = { boot, protocol: 1, runnerVersion: '0.1.0', podUID: 'pod-1', lastSeq: 0, epoch: 0 };

describe('the text of a log', () => {
  const log = { turn: 't-1', attempt: 1, text: 'ä line\n'.repeat(200), bytes: 1600, truncated: false };
  const decoded = (message: object, binary?: Buffer) => {
    const texts = frameText({ ...address, key: keys.up, random: systemRandom }, 1, 'log', packMessage(message, binary));
    return decoder().push(Buffer.from([...texts].join('')));
  };

  test('comes out of the binary part as it was put in', () => {
    const { message, binary } = packLog(log);
    assert.ok(binary && binary.length < 100 && message.text === '');
    const [event] = decoded(message, binary);
    assert.deepEqual(event?.type === 'frame' && event.frame.message, log);
  });
  test('of a few bytes stays in the message', () => {
    assert.deepEqual(packLog({ ...log, text: 'short' }), { message: { ...log, text: 'short' } });
  });
  test('that is no compressed text, or one of more than 1 MiB, has no effect', () => {
    const bomb = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024));
    for (const binary of [Buffer.from('no zstd'), bomb]) {
      const [event, ...others] = decoded({ ...log, text: '' }, binary);
      assert.deepEqual(
        [event?.type, event?.type === 'malformed' && event.problem, others],
        ['malformed', 'its binary part is no compressed text', []],
      );
    }
  });
});

describe('frames, decoded', () => {
  test('any split of the stream with any junk between the frames yields exactly the sent frames', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(sent, junk), { maxLength: 5 }), junk, cutPoints, (all, first, cuts) => {
        const { sender, texts } = collecting();
        const stream = [first];
        for (const [message, after] of all) {
          send(sender, message);
          stream.push(...texts.splice(0).flatMap((text) => [Buffer.from(text), after]));
        }
        const target = decoder();
        const events = split(Buffer.concat(stream), cuts).flatMap((chunk) => target.push(chunk));
        assert.deepEqual(frames(events), expected(all.map(([message]) => message)));
        assert.deepEqual(gaps(events), []);
      }),
      { numRuns: 300 },
    );
  });

  test('a stream that comes byte by byte yields the sent frames', () => {
    const { sender, texts } = collecting();
    const message = { turn: 't', attempt: 1, text: 'x'.repeat(20_000), bytes: 20_000, truncated: false };
    sender.send('log', message);
    const target = decoder();
    const events = [...Buffer.from(texts.join(''))].flatMap((byte) => target.push(Buffer.of(byte)));
    assert.deepEqual(
      frames(events).map((frame) => frame.message),
      [message],
    );
  });

  test('decoded frames are a prefix of the sent ones or a gap, whatever is lost, repeated, reordered, torn or forged', () => {
    fc.assert(
      fc.property(fc.array(sent, { minLength: 1, maxLength: 6 }), fc.array(fault), cutPoints, (all, faults, cuts) => {
        const { sender, texts } = collecting();
        for (const message of all) send(sender, message);
        const target = decoder();
        const arrived = spoil(texts, faults);
        const events = split(Buffer.from(arrived.join('')), cuts).flatMap((chunk) => target.push(chunk));
        assert.deepEqual(frames(events), expected(all).slice(0, target.next - 1));
        let delivered = 0;
        for (const event of events) {
          if (event.type === 'frame') delivered += 1;
          if (event.type !== 'gap') continue;
          assert.equal(event.from, delivered + 1);
          assert.ok(event.to >= event.from && event.to < all.length);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('every whole later frame that comes while one is missing is told as the exact gap before it', () => {
    fc.assert(
      fc.property(fc.array(sent, { minLength: 2, maxLength: 6 }), fc.nat(), (all, pick) => {
        const missing = 1 + (pick % (all.length - 1));
        const { sender, texts } = collecting();
        for (const message of all) send(sender, message);
        const late = decoder();
        const events = late.push(Buffer.from(texts.filter((text) => !text.includes(`"seq":${missing},`)).join('')));
        const wanted = Array.from({ length: all.length - missing }, (_, index) => [missing, missing + index]);
        assert.deepEqual(gaps(events), wanted);
        assert.equal(late.next, missing);
      }),
    );
  });

  test('a gap is told again when the frame after it is sent again', () => {
    const target = decoder();
    const second = [...frameText(up, 2, 'pong', packMessage(pong))].join('');
    assert.deepEqual(gaps(target.push(Buffer.from(second))), [[1, 1]]);
    assert.deepEqual(gaps(target.push(Buffer.from(second))), [[1, 1]]);
  });

  test('a large later frame tells its gap once for all of its parts', () => {
    const target = decoder();
    const message = { turn: 't', attempt: 1, text: 'x'.repeat(100_000), bytes: 1, truncated: false };
    const text = [...frameText(up, 2, 'log', packMessage(message))].join('');
    assert.deepEqual(gaps(target.push(Buffer.from(text))), [[1, 1]]);
    assert.equal(target.counters.early, 11);
  });

  test('a frame sealed with another key, or under a changed header, is counted as forged and nothing else', () => {
    const target = decoder();
    const text = [...frameText({ ...up, key: keys.down }, 1, 'pong', packMessage(pong))].join('');
    const renumbered = [...frameText(up, 2, 'pong', packMessage(pong))]
      .join('')
      .replace('"seq":2', '"seq":1')
      .replace('END 2/1', 'END 1/1');
    assert.deepEqual(target.push(Buffer.from(text + renumbered)), []);
    assert.equal(target.counters.forged, 2);
  });

  test('a frame of another session, incarnation or boot is counted as foreign and nothing else', () => {
    const target = decoder();
    for (const other of [{ session: 'other' }, { incarnation: 2 }, { boot: 'c'.repeat(32) }]) {
      const text = [...frameText({ ...up, ...other }, 1, 'pong', packMessage(pong))].join('');
      assert.deepEqual(target.push(Buffer.from(text)), []);
    }
    assert.equal(target.counters.foreign, 3);
  });

  test('a clear ready is told before the keys are known, and a sealed frame is not', () => {
    const target = new FrameDecoder();
    const sealed = [...frameText(up, 1, 'pong', packMessage(pong))].join('');
    assert.deepEqual(target.push(Buffer.from(sealed + readyText(ready))), [{ type: 'ready', ready }]);
    assert.equal(target.counters.unkeyed, 1);
    target.setChannel({ ...address, key: keys.up });
    assert.equal(frames(target.push(Buffer.from(sealed))).length, 1);
  });

  test('a ready with wrong fields is counted and not told', () => {
    const target = decoder();
    assert.deepEqual(target.push(Buffer.from(readyText({ ...ready, lastSeq: -1 }))), []);
    assert.equal(target.counters.malformed, 1);
  });

  test('a sealed frame whose message is not valid is told once and passed over', () => {
    const target = decoder();
    const bad = [...frameText(up, 1, 'pong', packMessage({ n: 'one' }))].join('');
    const unknown = [...frameText(up, 2, 'gossip', packMessage({}))].join('');
    const good = [...frameText(up, 3, 'pong', packMessage(pong))].join('');
    const events = target.push(Buffer.from(bad + bad + unknown + good));
    assert.deepEqual(
      events.map((event) => event.type),
      ['malformed', 'malformed', 'frame'],
    );
    assert.equal(target.next, 4);
  });

  test('fields that this version does not know are left out of the message', () => {
    const events = decoder().push(
      Buffer.from([...frameText(up, 1, 'pong', packMessage({ ...pong, mood: 'good' }))].join('')),
    );
    assert.deepEqual(frames(events)[0]?.message, pong);
  });

  test('a message above the limit is counted as too large and never gathered', () => {
    const target = decoder(50_000);
    const message = { turn: 't', attempt: 1, text: 'x'.repeat(100_000), bytes: 1, truncated: false };
    const text = [...frameText(up, 1, 'log', packMessage(message))].join('');
    assert.deepEqual(target.push(Buffer.from(text)), []);
    assert.equal(target.counters.tooLarge, 11);
  });

  test('a frame whose body is longer than a body can be is counted as torn', () => {
    const target = decoder();
    const [head] = [...frameText(up, 1, 'pong', packMessage(pong))].join('').split('\n');
    for (const length of [12_289, 60_000]) target.push(Buffer.from(`${head}\n${'A'.repeat(length)}\n`));
    assert.equal(target.counters.torn, 2);
  });

  test('endless lines, unfinished markers and parts that never end are held in bounded memory', async () => {
    setFlagsFromString('--expose_gc');
    const gc = runInNewContext('gc') as () => void;
    // The memory of buffers is given back in a later task than the collection that finds them unused.
    const collected = async () => {
      for (let round = 0; round < 3; round += 1) {
        gc();
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { arrayBuffers, heapUsed } = process.memoryUsage();
      return arrayBuffers + heapUsed;
    };
    const message = { turn: 't', attempt: 1, text: 'x'.repeat(200_000), bytes: 1, truncated: false };
    const parts = [...frameText(up, 1, 'log', packMessage(message))].slice(1);
    const floods: Record<string, Buffer> = {
      endless: Buffer.alloc(256 * 1024, 'x'),
      markers: Buffer.from('<<<BERTH_START '.repeat(17_000)),
      bodies: Buffer.from(`<<<BERTH_START {"v":1}>>>\n${'A'.repeat(12_000)}\n`.repeat(20)),
      parts: Buffer.from(parts.join('')),
    };
    for (const [name, flood] of Object.entries(floods)) {
      const target = decoder();
      target.push(flood);
      const before = await collected();
      for (let round = 0; round < 60; round += 1) assert.deepEqual(frames(target.push(flood)), []);
      const grown = (await collected()) - before;
      assert.ok(grown < 2 * 1024 * 1024, `${name} grew memory by ${grown} bytes`);
    }
  });

  test('random bytes never make the decoder throw or deliver', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            junk,
            fc.uint8Array({ maxLength: 500 }).map((b) => Buffer.from(b)),
          ),
        ),
        (chunks) => {
          const target = decoder();
          for (const chunk of chunks) assert.deepEqual(target.push(chunk), []);
        },
      ),
    );
  });
});
