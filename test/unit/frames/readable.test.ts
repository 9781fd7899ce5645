import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { frameText } from '../../../core/frames/encode.ts';
import { ReadableText } from '../../../core/frames/readable.ts';
import { up } from './support.ts';

function read(log: Buffer, cuts: number[]): string {
  const text = new ReadableText({ hasRunner: true });
  let printed = '';
  let at = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    printed += text.push(log.subarray(at, Math.max(at, cut)));
    at = Math.max(at, cut);
  }
  return printed + text.push(log.subarray(at)) + text.end();
}

const line = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replace(/[\n\r]/g, ''));
const frame = fc
  .uint8Array({ minLength: 2, maxLength: 30_000 })
  .map((bytes) => [...frameText(up, 7, 'log', Buffer.from(bytes))].join('').trimEnd().split('\n'));

describe('the readable text of a pod’s log', () => {
  test('is every line that belongs to no frame, however frames, lines and reads are interleaved', () => {
    fc.assert(
      fc.property(
        fc.array(line),
        fc.array(frame, { maxLength: 3 }),
        fc.infiniteStream(fc.boolean()),
        fc.array(fc.nat(90_000)),
        (lines, frames, order, cuts) => {
          const text = [...lines];
          const rest = frames.flat();
          const log: string[] = [];
          while (text.length > 0 || rest.length > 0) {
            const fromText = rest.length === 0 || (text.length > 0 && order.next().value);
            log.push((fromText ? text : rest).shift() as string);
          }
          const bytes = Buffer.from(log.map((one) => `${one}\n`).join(''));
          assert.equal(read(bytes, cuts), lines.map((one) => `${one}\n`).join(''));
        },
      ),
      { numRuns: 60 },
    );
  });
  test('is every line where there is no runner, whatever lines look like', () => {
    const log = '<<<BERTH_START {}>>>\nQUJD\n<<<BERTH_END 1/1>>>\n';
    assert.equal(new ReadableText({ hasRunner: false }).push(Buffer.from(log)), log);
    assert.equal(read(Buffer.from(log), []), 'QUJD\n');
  });
  test('ends with a line that was never ended', () => {
    assert.equal(read(Buffer.from('a\nb'), []), 'a\nb');
  });
  test('does not wait for the end of an endless line', () => {
    assert.equal(new ReadableText({ hasRunner: true }).push(Buffer.alloc(70_000, '.')).length, 70_000);
  });
  test('does not wait for the end of an endless line where a frame has begun, and has the whole line', () => {
    const text = new ReadableText({ hasRunner: true });
    text.push(Buffer.from('<<<BERTH_START {\n'));
    assert.equal(text.push(Buffer.alloc(70_000, '.')).length, 70_000);
    const rest = `${'A'.repeat(40)}\n`;
    assert.equal(text.push(Buffer.from(rest)), rest, 'the end of the line looks like the body of a frame');
    assert.equal(text.push(Buffer.from(rest)), '', 'the next line is one');
  });
});
