import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { LineSplitter } from '../../../core/frames/lines.ts';

test('lines up to the limit come out whole, of longer ones at least the wanted end and the number of bytes lost', () => {
  // No two places of a line look alike.
  const line = fc.nat(60).map((length) => String.fromCharCode(...Array.from({ length }, (_, index) => 33 + index)));
  fc.assert(
    fc.property(fc.array(line), fc.integer({ min: 1, max: 70 }), (all, size) => {
      const splitter = new LineSplitter(20, 6);
      const got: { text: string; lost: number }[] = [];
      const stream = Buffer.from(all.map((text) => `${text}\n`).join(''));
      for (let at = 0; at < stream.length; at += size) {
        splitter.push(stream.subarray(at, at + size), (bytes, lost) => got.push({ text: bytes.toString(), lost }));
      }
      assert.equal(got.length, all.length);
      for (const [index, { text, lost }] of got.entries()) {
        const wanted = all[index] as string;
        assert.ok(text.length <= 20 && wanted.endsWith(text));
        assert.equal(text.length + lost, wanted.length);
        assert.ok(text.length >= Math.min(6, wanted.length));
        if (wanted.length <= 20) assert.equal(text, wanted);
      }
    }),
    { numRuns: 1000 },
  );
});
