import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { FRAMES, type FrameKind } from '../../../core/frames/catalogue.ts';
import { FrameDecoder, type FrameEvent } from '../../../core/frames/decode.ts';

import { ReleasedRanges } from '../../../core/frames/released.ts';
import { FrameSender } from '../../../core/frames/sender.ts';
import { FrameError } from '../../../core/frames/wire.ts';
import { address, collecting, expected, fault, keys, plain, send, sent, spoil, up } from './support.ts';

const pong = { n: 1, incarnation: 3, idleMs: 5, suspended: false };
const logOf = (length: number) => ({
  turn: 't',
  attempt: 1,
  text: 'x'.repeat(length),
  bytes: length,
  truncated: false,
});

function decoder(): FrameDecoder {
  const made = new FrameDecoder();
  made.setChannel({ ...address, key: keys.up });
  return made;
}

/** Each event as `kind seq` or `dropped from-to`. */
const story = (events: FrameEvent[]) =>
  events.map((event) => {
    if (event.type === 'frame') return `${event.frame.kind} ${event.frame.seq}`;
    if (event.type === 'dropped') return `dropped ${event.dropped.from}-${event.dropped.to}`;
    return event.type === 'gap' ? `gap ${event.from}-${event.to}` : event.type;
  });

const decode = (texts: string[], target = decoder()) => story(target.push(Buffer.from(texts.splice(0).join(''))));

describe('frames, sent', () => {
  test('numbers are given from 1 without gaps', () => {
    const { sender } = collecting();
    assert.deepEqual([sender.send('pong', pong), sender.send('log', logOf(1)), sender.send('pong', pong)], [1, 2, 3]);
    assert.equal(sender.lastSeq, 3);
  });

  test('a resend brings every frame held, in order, from the number asked for', () => {
    const { sender, texts } = collecting();
    sender.send('pong', pong);
    sender.send('log', logOf(30_000));
    sender.send('pong', pong);
    texts.length = 0;
    sender.resend(1);
    assert.deepEqual(decode(texts), ['pong 1', 'log 2', 'pong 3']);
  });

  test('acknowledged frames are reported as one dropped range with its counts, and their memory is freed', () => {
    const { sender, texts } = collecting();
    for (let n = 0; n < 3; n += 1) {
      sender.send('pong', pong);
      sender.send('log', logOf(10));
    }
    sender.ack(4);
    texts.length = 0;
    sender.resend(1);
    const events = decoder().push(Buffer.from(texts.join('')));
    assert.deepEqual(story(events), ['dropped 1-4', 'pong 5', 'log 6']);
    assert.deepEqual(events[0], { type: 'dropped', dropped: { from: 1, to: 4, counts: { pong: 2, log: 2 } } });
    sender.ack(6);
    assert.deepEqual(
      [2, 4, 6].map((seq) => sender.holds(seq)),
      [false, false, false],
    );
  });

  test('a dropped range counts no artifacts: a controller from before them would refuse the message', () => {
    const { sender, texts } = collecting();
    sender.send('pong', pong);
    sender.send('artifacts', { turn: 't', attempt: 1, files: [] });
    sender.ack(2);
    texts.length = 0;
    sender.resend(1);
    const [event] = decoder().push(Buffer.from(texts.join('')));
    assert.deepEqual(event, { type: 'dropped', dropped: { from: 1, to: 2, counts: { pong: 1 } } });
  });

  test('an acknowledgement beyond the last number covers what was sent, not what will be', () => {
    const { sender, texts } = collecting();
    sender.send('log', logOf(1));
    sender.ack(99);
    sender.send('log', logOf(1));
    texts.length = 0;
    sender.resend(1);
    assert.deepEqual(decode(texts), ['dropped 1-1', 'log 2']);
  });

  test('durable kinds are held until acknowledged while the others fall out of the ring, oldest first', () => {
    const { sender, texts } = collecting({ ringBytes: 1000 });
    sender.send('log', logOf(5000));
    for (let n = 0; n < 10; n += 1) sender.send('pong', pong);
    sender.send('bye', { reason: 'Shutdown', message: '' });
    texts.length = 0;
    sender.resend(1);
    const told = decode(texts);
    assert.deepEqual(told.slice(0, 2), ['log 1', 'dropped 2-6']);
    assert.equal(told.at(-1), 'bye 12');
  });

  test('more than may be held is refused with a code, and gives no number', () => {
    const { sender } = collecting({ maxDurableBytes: 10_000 });
    sender.send('log', logOf(5000));
    assert.throws(
      () => sender.send('log', logOf(5000)),
      (error) => error instanceof FrameError && error.code === 'TooMuchHeld',
    );
    assert.equal(sender.lastSeq, 1);
    sender.ack(1);
    assert.equal(sender.send('log', logOf(5000)), 2);
  });

  test('while the reader is slow nothing is written, and what left the ring in between is told as dropped', () => {
    let open = false;
    const texts: string[] = [];
    const write = (text: string) => {
      texts.push(text);
      return open;
    };
    const sender = new FrameSender({ ...up, write, ringBytes: 1000 });
    for (let n = 0; n < 50; n += 1) sender.send('pong', pong);
    assert.equal(texts.length, 1);
    open = true;
    sender.drained();
    const told = decode(texts);
    assert.equal(told[0], 'pong 1');
    assert.match(told[1] as string, /^dropped 1-4\d$/);
    assert.equal(told.at(-1), 'pong 50');
  });

  test('of two resends that wait for a slow reader the earlier number counts', () => {
    let open = false;
    const texts: string[] = [];
    const sender = new FrameSender({ ...up, write: (text) => texts.push(text) > 0 && open });
    for (let n = 0; n < 4; n += 1) sender.send('pong', pong);
    sender.resend(1);
    sender.resend(3);
    open = true;
    sender.drained();
    assert.deepEqual(decode(texts.slice(1)), ['pong 1', 'pong 2', 'pong 3', 'pong 4']);
  });

  test('a resend from beyond what a slow reader was given skips nothing', () => {
    let open = false;
    const texts: string[] = [];
    const sender = new FrameSender({ ...up, write: (text) => texts.push(text) > 0 && open });
    for (let n = 0; n < 4; n += 1) sender.send('pong', pong);
    sender.resend(4);
    open = true;
    sender.drained();
    assert.deepEqual(decode(texts), ['pong 1', 'pong 2', 'pong 3', 'pong 4']);
  });

  test('a range that is no longer held is told with one frame', () => {
    const { sender, texts } = collecting();
    for (let n = 0; n < 5; n += 1) sender.send('pong', pong);
    sender.ack(5);
    texts.length = 0;
    sender.resend(2);
    assert.equal(texts.length, 1);
    assert.deepEqual(decode(texts), ['dropped 1-5']);
  });

  test('a frame under way is finished before a resend starts over, so that repeated requests still make progress', () => {
    const texts: string[] = [];
    const write = (text: string) => texts.push(text) < 0;
    const sender = new FrameSender({ ...up, write });
    sender.send('log', logOf(100_000));
    const target = decoder();
    const told = [];
    for (let n = 0; n < 40 && told.length === 0; n += 1) {
      sender.resend(1);
      sender.drained();
      told.push(...decode(texts, target));
    }
    assert.deepEqual(told, ['log 1']);
  });

  test('asking for resends until nothing is missing heals any faults: every durable frame comes, each once', () => {
    fc.assert(
      fc.property(
        fc.array(sent, { minLength: 1, maxLength: 8 }),
        fc.array(fc.array(fault), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(300, 1024 * 1024),
        (all, rounds, ringBytes) => {
          const { sender, texts } = collecting({ ringBytes });
          for (const message of all) send(sender, message);
          const target = decoder();
          const events: FrameEvent[] = [];
          for (const faults of [...rounds, [], []]) {
            events.push(...target.push(Buffer.from(spoil(texts.splice(0), faults).join(''))));
            if (target.next <= sender.lastSeq) sender.resend(target.next);
          }
          assert.equal(target.next, all.length + 1);
          const got = events.flatMap((event) => (event.type === 'frame' ? [plain(event.frame)] : []));
          const seqs = new Set(got.map((frame) => frame.seq));
          const wanted = expected(all);
          assert.deepEqual(
            got,
            wanted.filter((frame) => seqs.has(frame.seq)),
          );
          const lost = wanted.filter((frame) => !seqs.has(frame.seq));
          assert.ok(lost.every((frame) => !FRAMES[frame.kind].kept));
          const told = events.flatMap((event) => (event.type === 'dropped' ? [event.dropped] : []));
          for (const { seq } of lost) assert.ok(told.some(({ from, to }) => from <= seq && seq <= to));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('released ranges', () => {
  test('any order of releases gives the same ranges, whole and with the right counts', () => {
    const kinds: FrameKind[] = ['pong', 'log'];
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (seqs) => {
        const ranges = new ReleasedRanges();
        for (const seq of seqs) ranges.add(seq, kinds[seq % 2] as FrameKind);
        const set = new Set(seqs);
        for (const seq of seqs) {
          let from = seq;
          let to = seq;
          while (set.has(from - 1)) from -= 1;
          while (set.has(to + 1)) to += 1;
          const range = ranges.covering(seq);
          const inside = Array.from({ length: to - from + 1 }, (_, index) => from + index);
          assert.deepEqual([range.from, range.to], [from, to]);
          assert.equal(range.counts.pong ?? 0, inside.filter((n) => n % 2 === 0).length);
          assert.equal(range.counts.log ?? 0, inside.filter((n) => n % 2 === 1).length);
        }
        assert.throws(() => ranges.covering(31), RangeError);
      }),
    );
  });
});
