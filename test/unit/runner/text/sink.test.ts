import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, test } from 'vitest';
import { TextSink } from '../../../../runner/text/sink.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MIB = 1024 * 1024;
const STALL_MS = 5000;

/** A stream whose reader takes what it is given when it is told to. */
function slowReader() {
  const taken: Buffer[] = [];
  let writes = 0;
  let go: (() => void) | undefined;
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      writes += 1;
      taken.push(chunk);
      go = done;
    },
  });
  return {
    stream,
    text: () => Buffer.concat(taken).toString(),
    writes: () => writes,
    /** Takes all that waits. */
    async read(): Promise<void> {
      while (go) {
        const next = go;
        go = undefined;
        next();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

describe('text for a reader who is slow', () => {
  test('is written in few writes, however many pieces of it came, in their order', async () => {
    const reader = slowReader();
    const sink = new TextSink(reader.stream, new VirtualClock());
    const long = 'ö'.repeat(20_000);
    const texts = [...Array.from({ length: 300_000 }, (_, i) => 'aß€😀'[i % 4] as string), long, 'end'];
    for (const text of texts) sink.write(text);
    await reader.read();
    assert.equal(reader.text(), Buffer.from(texts.join('')).toString());
    assert.ok(reader.writes() < 100, `${reader.writes()} writes`);
  });

  test('holds up the agent above a MiB until all of it is taken', async () => {
    const reader = slowReader();
    const sink = new TextSink(reader.stream, new VirtualClock());
    for (let i = 0; i < 1024; i++) sink.write('x'.repeat(1024));
    assert.equal(sink.pressure.full, false);
    sink.write('x');
    assert.equal(sink.pressure.full, true);
    await reader.read();
    assert.equal(sink.pressure.full, false);
    assert.equal(reader.text().length, MIB + 1);
  });

  test('is left out above four MiB, or once nobody has read for five seconds, and the count of it follows what was taken', async () => {
    const clock = new VirtualClock();
    const reader = slowReader();
    const sink = new TextSink(reader.stream, clock);
    for (let i = 0; i < 5 * 1024; i++) sink.write('x'.repeat(1024));
    const kept = 4 * MIB + 1024;
    await reader.read();
    const left = (bytes: number) => `[berth: ${bytes} bytes are left out: nobody read this stream]\n`;
    assert.equal(reader.text(), `${'x'.repeat(kept)}${left(5 * MIB - kept)}`);

    const before = reader.text().length;
    sink.write('y'.repeat(MIB));
    sink.write('z');
    await clock.advance(STALL_MS);
    sink.write('left out');
    assert.equal(sink.pressure.full, false, 'the agent goes on');
    await reader.read();
    assert.equal(reader.text().slice(before), `${'y'.repeat(MIB)}z${left(8)}`);
    sink.write('after');
    assert.ok(reader.text().endsWith('after'));
  });

  test('is left out for good once the reader is gone', async () => {
    const stream = new Writable({ write: (_chunk, _, done) => done(new Error('EPIPE')) });
    const sink = new TextSink(stream, new VirtualClock());
    sink.write('x');
    await new Promise((resolve) => setImmediate(resolve));
    sink.write('y'.repeat(2 * MIB));
    assert.deepEqual([sink.pressure.stalled, sink.pressure.full], [true, false]);
  });
});
