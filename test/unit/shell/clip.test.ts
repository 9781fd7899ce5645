import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { Clip } from '../../../runner/text/clip.ts';

const clip = (pieces: string[], head: number, tail: number) => {
  const kept = new Clip(head, tail);
  for (const piece of pieces) kept.push(piece);
  return kept.result();
};

test('a text that fits is kept as it is, however it came', () => {
  assert.deepEqual(clip([], 4, 4), { text: '', bytes: 0, leftOut: 0 });
  assert.deepEqual(clip(['abc', '', 'def', 'gh'], 4, 4), { text: 'abcdefgh', bytes: 8, leftOut: 0 });
});

test('one byte more leaves one out, and the text says so where it was', () => {
  const { text, bytes, leftOut } = clip(['abcdefghi'], 4, 4);
  assert.deepEqual([text, bytes, leftOut], ['abcd\n[berth: 1 bytes are left out here]\nfghi', 9, 1]);
});

test('head and tail are the ends of the whole text, cut between characters, whatever the pieces', () => {
  const text = fc.string({ unit: 'binary', maxLength: 200 });
  fc.assert(
    fc.property(
      fc.array(text),
      fc.integer({ min: 0, max: 60 }),
      fc.integer({ min: 0, max: 60 }),
      (pieces, head, tail) => {
        const whole = pieces.join('');
        const { text: kept, bytes, leftOut } = clip(pieces, head, tail);
        assert.equal(bytes, Buffer.byteLength(whole));
        if (leftOut === 0) return assert.equal(kept, whole);
        const [begin = '', end = ''] = kept.split(`\n[berth: ${leftOut} bytes are left out here]\n`);
        assert.ok(whole.startsWith(begin) && whole.endsWith(end));
        assert.ok(Buffer.byteLength(begin) <= head && Buffer.byteLength(end) <= tail);
        assert.equal(Buffer.byteLength(begin) + leftOut + Buffer.byteLength(end), bytes);
      },
    ),
    { seed: 3, numRuns: 300 },
  );
});
