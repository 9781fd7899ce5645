import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { hiddenBy } from '../../../../core/text/hidden.ts';
import { Redactor, redact } from '../../../../core/text/redact.ts';
import { Wrapped } from '../../../../core/text/wrapped.ts';

/** Rules that redact these secrets in logs. */
const rulesOf = (values: string[]) => hiddenBy({ values }).logs;

/** Few letters, and line breaks that look like letters. */
const part = fc.constantFrom('n', 'r', 'rn', 'nn', 'nrrn', '\n', '\r', '\r\n', '\\', '\\n', '\\r\\n', ' ', '   ', '.');
const text = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(''));
const form = fc.array(fc.constantFrom('n', 'r'), { minLength: 8, maxLength: 12 }).map((letters) => letters.join(''));

/** The places that one of the texts takes over several lines, tried at every place. */
function expected(within: string, forms: string[]): number[] {
  const breaks = new Map<number, number>();
  for (const found of within.matchAll(/(?:\r?\n|(?:\\r)?\\n)[ \t]{0,16}/g))
    breaks.set(found.index, found.index + found[0].length);
  const letters = new Set(within.split('').keys());
  for (const [start, end] of breaks) for (let i = start; i < end; i++) letters.delete(i);
  const places = new Set<number>();
  for (const one of forms) {
    for (const begin of letters) {
      let at = begin;
      let from = begin;
      let crosses = false;
      let matched = 0;
      while (matched < one.length) {
        const behind = matched > 0 ? breaks.get(at) : undefined;
        if (behind !== undefined) {
          crosses = true;
          at = behind;
          if (matched < 3) from = at;
        }
        if (!letters.has(at) || within[at] !== one[matched]) break;
        matched += 1;
        at += 1;
      }
      if (matched === one.length && crosses) for (let i = from; i < at; i++) places.add(i);
    }
  }
  return [...places].sort((a, b) => a - b);
}

describe('texts over several lines', () => {
  for (const [what, minLength, maxLength] of [
    ['a few', 1, 5],
    ['many', 66, 80],
  ] as const) {
    test(`${what} are found wherever they stand, and nothing else`, () => {
      fc.assert(
        fc.property(fc.uniqueArray(form, { minLength, maxLength }), text, (forms, within) => {
          const found = new Set<number>();
          for (const { start, end } of new Wrapped(forms).find('', within)) {
            for (let i = start; i < end; i++) found.add(i);
          }
          assert.deepEqual(
            [...found].sort((a, b) => a - b),
            expected(within, forms),
          );
        }),
        { numRuns: 1000 },
      );
    });
  }

  test('are replaced alike however the text is cut', () => {
    // The secret in base64 is ZW5u…; the cut parts stand before and behind it.
    const value = 'ennnnnnnnnnnnnnnne';
    const base64 = [0, 1, 2].map((n) => Buffer.from(`${'x'.repeat(n)}${value}y`).toString('base64'));
    const pieces = base64.flatMap((whole) => [
      whole,
      whole.slice(0, 5),
      whole.slice(5),
      whole.slice(0, 2),
      whole.slice(2),
    ]);
    const word = fc.oneof(part, fc.constantFrom(...pieces, value.slice(0, 4), value.slice(4), 'n'.repeat(4)));
    const words = fc.array(word, { maxLength: 30 }).map((all) => all.join(''));
    fc.assert(
      fc.property(words, fc.array(fc.nat(300), { maxLength: 30 }), fc.boolean(), (whole, cuts, lines) => {
        const forms = rulesOf(lines ? [value] : [value, 'two\nlines', 'rnrnrnrnrnrnrnrn']);
        const redactor = new Redactor(forms);
        let result = '';
        let at = 0;
        for (const cut of [...cuts].sort((a, b) => a - b)) {
          result += redactor.push(whole.slice(at, Math.max(at, cut)));
          at = Math.max(at, cut);
        }
        result += redactor.push(whole.slice(at)) + redactor.end();
        assert.equal(result, redact(whole, forms));
      }),
      { numRuns: 3000 },
    );
  });

  for (const [among, others] of [
    ['few', []],
    ['many', Array.from({ length: 60 }, (_, i) => `another secret ${i}`)],
  ] as const) {
    test(`a line is told when it ends, unless what it ends with may go on in the next: among ${among}`, () => {
      const value = 'correct hors';
      const redactor = new Redactor(rulesOf([...others, value]));
      const base64 = Buffer.from(`x${value}`).toString('base64');
      const [before, middle] = [base64.slice(0, 2), base64.slice(2, -3)];
      assert.equal(redactor.push('hello wor\n'), 'hello wor\n');
      assert.equal(redactor.push(`at ${middle.slice(0, 2)}\n`), `at ${middle.slice(0, 2)}\n`);
      assert.equal(redactor.push(`at ${middle.slice(0, 3)}\n`), 'at ');
      assert.equal(redactor.push('x\n'), `${middle.slice(0, 3)}\nx\n`);
      assert.equal(redactor.push(`at ${before}${middle.slice(0, 9)}\r`), '');
      assert.equal(redactor.push('\n\t'), `at ${before}`);
      assert.equal(redactor.push(`${middle.slice(9)}\n`), '[REDACTED]\n');
    });
  }

  test('a match that began before the text, and could not, does not count', () => {
    const token = `n${'A'.repeat(60)}`;
    const wrapped = new Wrapped([token]);
    assert.deepEqual(wrapped.find(`${token.slice(0, 41)}\n`, token.slice(41)), []);
    assert.equal(wrapped.begun(`${token.slice(0, 41)}\n`, `${token.slice(41, 50)}\n`), 10);
    assert.deepEqual(wrapped.find(`${token.slice(0, 2)}\n`, token.slice(2)), [{ start: 0, end: 59 }]);
    assert.equal(wrapped.begun(`${token.slice(0, 2)}\n`, `${token.slice(2, 50)}\n`), 0);
  });

  test('two words below each other are not a secret of both', () => {
    assert.equal(redact('user\nname\n', rulesOf(['username'])), 'user\nname\n');
  });
});
