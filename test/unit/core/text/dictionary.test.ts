import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { Dictionary } from '../../../../core/text/dictionary.ts';

/** Few characters, two of which share their low byte, so that much begins alike. */
const chars = fc.constantFrom('a', 'b', 'š', '\u0261', '😀');
const word = fc.array(chars, { minLength: 4, maxLength: 9 }).map((parts) => parts.join(''));
const text = fc.array(chars, { maxLength: 60 }).map((parts) => parts.join(''));

describe('a dictionary', () => {
  for (const [what, minLength, maxLength] of [
    ['a few texts', 1, 10],
    ['many texts', 70, 100],
  ] as const) {
    test(`finds ${what} wherever they begin before the cut, and nothing else`, () => {
      const words = fc.uniqueArray(word, { minLength, maxLength });
      fc.assert(
        fc.property(words, text, fc.nat(70), (texts, within, cut) => {
          const expected = new Set<number>();
          for (const one of texts) {
            for (let start = 0; start < Math.min(cut, within.length); start++) {
              if (within.startsWith(one, start)) for (let i = 0; i < one.length; i++) expected.add(start + i);
            }
          }
          const found = new Set<number>();
          for (const { start, end } of new Dictionary(texts).find(within, cut)) {
            for (let i = start; i < end; i++) found.add(i);
          }
          assert.deepEqual([...found].sort(), [...expected].sort());
        }),
        { numRuns: 300 },
      );
    });
  }

  test('refuses a text that is too short to be told from others', () => {
    assert.throws(() => new Dictionary(['abcd', 'abc']), /has 3 characters; at least 4 are needed/);
  });
});
