import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test, vi } from 'vitest';
import { hiddenBy, type Rules } from '../../../../core/text/hidden.ts';
import { MAX_MATCH_CHARS, Pattern, patternProblem } from '../../../../core/text/pattern.ts';
import { Redactor, redact } from '../../../../core/text/redact.ts';
import { Steps } from '../../../../core/text/steps.ts';

const R = '[REDACTED]';

/** A text in pieces that end at the given places. */
/** Rules that redact these secrets in logs. */
const rulesOf = (values: string[], patterns: Pattern[] = []) => hiddenBy({ values, patterns }).logs;

function inPieces(text: string, cuts: number[], hidden: Rules): string {
  const redactor = new Redactor(hidden);
  let result = '';
  let at = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    result += redactor.push(text.slice(at, Math.max(at, cut)));
    at = Math.max(at, cut);
  }
  return result + redactor.push(text.slice(at)) + redactor.end();
}

const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
/** No pattern of ours matches a line feed, and a character above U+FFFF is one to a repeat. */
const asNative = (pattern: string) =>
  pattern
    .replaceAll('[^', '[^\\n')
    .replaceAll('😀', '(?:😀)')
    .replaceAll('\\s', '[^\\S\\n]')
    .replaceAll('\\D', '[^\\d\\n]')
    .replaceAll('\\W', '[^\\w\\n]');

const atom = fc.constantFrom(
  'a',
  'b',
  'K',
  'ſ',
  '😀',
  '[ab]',
  '[^a]',
  '.',
  '[a-c]',
  '[^a-b-]',
  '[-a]',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '[\\w-]',
  '[\\d-x]',
  '[+-\\d]',
  '\\.',
  '\\t',
  '[\\]\\\\]',
);
const times = fc.constantFrom('', '', '', '?', '{2}', '{1,3}', '{0,2}');
const { source } = fc.letrec<{ source: string; choice: string; part: string }>((tie) => ({
  source: fc
    .array(fc.tuple(tie('part'), times), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.map((part) => part.join('')).join('')),
  choice: fc.array(tie('source'), { minLength: 1, maxLength: 3 }).map((parts) => `(?:${parts.join('|')})`),
  part: fc.oneof({ maxDepth: 3 }, atom, atom, tie('choice')),
}));
const anyCase = fc.constantFrom('', '(?i)');
const text = fc
  .array(
    fc.constantFrom(
      'a',
      'b',
      'c',
      'A',
      'k',
      'K',
      's',
      '1',
      '_',
      '-',
      '+',
      ' ',
      '\t',
      '\n',
      '\u00a0',
      '.',
      ']',
      '\\',
      '😀',
    ),
    { maxLength: 14 },
  )
  .map((chars) => chars.join(''));

describe('a pattern of a class', () => {
  const table: [sentence: string, pattern: string, text: string, expected: string][] = [
    ['is text as it is', 'abc', 'xabcx', `x${R}x`],
    ['takes the longest match', 'ghp_[A-Za-z0-9]{4,8}', 'a ghp_abcdef b', `a ${R} b`],
    ['knows choices and groups', '(acme|corp)-(?:\\d{3}|x)', 'acme-123 corp-x acme-x1', `${R} ${R} ${R}1`],
    ['knows what may be absent', 'colou?r', 'color colour', `${R} ${R}`],
    ['knows any case', '(?i)pin [0-9]{4}', 'PIN 1234', R],
    ['knows classes and what they are not', '<[^>]{1,20}>', '<abc> d', `${R} d`],
    ['ends with its line', 'a.{0,9}b', 'a\nb acb', `a\nb ${R}`],
    ['knows a hyphen, a bracket and a backslash in a class', '[a\\]\\\\-]{2}!', 'a]! -\\! ab!', `${R} ${R} ab!`],
    ['counts letters, digits and spaces', '\\w\\s\\d\\.', 'a 1. a 1x', `${R} a 1x`],
    ['takes a class before a hyphen for no range', '[\\w-z]!', '`! -! z!', `\`! ${R} ${R}`],
    ['repeats a character above U+FFFF as a whole', 'x😀{2}', 'x😀 x😀😀', `x😀 ${R}`],
    ['redacts overlapping matches as one', 'aba', 'xababax', `x${R}x`],
  ];
  for (const [sentence, pattern, text, expected] of table) {
    test(sentence, () => assert.equal(redact(text, rulesOf([], [new Pattern(pattern)])), expected));
  }

  const refused: [pattern: string, problem: RegExp][] = [
    ['a*', /at character 2: "\*" has no end; bound it/],
    ['(a+)+b', /"\+" has no end/],
    ['a{3,}', /"\{3,\}" has no end/],
    ['a{1,300}', /can have 300 characters; at most 256/],
    ['(a{1,30}){1,30}', /can have 900 characters/],
    ['a?', /matches the empty text/],
    ['(a|)', /matches the empty text/],
    ['a((){1000}){1000}', /too large/],
    ['a(((((){1000}){1000}){1000}){1000}){1000}', /too large/],
    ['^a', /"\^" is not known/],
    ['a$', /"\$" is not known/],
    ['\\bkey', /"\\b" is not known/],
    ['(a)\\1', /"\\1" is not known/],
    ['(?=a)b', /only \(\?: \) is known/],
    ['(a', /a "\)" is missing/],
    ['a)', /closes nothing/],
    ['[a', /a "\]" is missing/],
    ['[', /a "\]" is missing/],
    ['[z-a]', /no class of characters/],
    ['[[:alpha:]]', /names of classes are not known/],
    ['[a😀]', /no characters above U\+FFFF/],
    ['a{2}{2}', /repeat of a repeat/],
    ['?a', /repeats nothing/],
    ['a\\', /is not known/],
  ];
  for (const [pattern, problem] of refused) {
    test(`${pattern} is refused, and why`, () => assert.match(patternProblem(pattern) ?? '', problem));
  }

  /** All characters of the matches that begin before `before`: each place is tried with every length, one after the other. */
  function slowly(pattern: Pattern, native: RegExp, whole: string, before: number): number[] {
    const covered = new Set<number>();
    for (let at = 0; at < Math.min(before, whole.length); at++) {
      for (let end = at + 1; end <= Math.min(whole.length, at + pattern.maxLength); end++) {
        if (native.test(whole.slice(at, end))) for (const i of range(at, end)) covered.add(i);
      }
    }
    return [...covered].sort((a, b) => a - b);
  }

  test('finds whatever a regular expression finds that is tried at every position, and nothing else', () => {
    fc.assert(
      fc.property(source, anyCase, text, fc.integer({ min: 1, max: 30 }), (pattern, flag, whole, before) => {
        fc.pre(patternProblem(flag + pattern) === undefined);
        const own = new Pattern(flag + pattern);
        const native = new RegExp(`^(?:${asNative(pattern)})$`, flag ? 'i' : '');
        assert.deepEqual(
          own.cover(whole, before).flatMap(({ start, end }) => range(start, end)),
          slowly(own, native, whole, before),
          `${flag}${pattern} in ${JSON.stringify(whole)}, up to ${before}`,
        );
      }),
      { numRuns: 3000 },
    );
  });

  test('finds the same wherever in a long text it stands', () => {
    const long = ['a{3,20}b', '[ab]{1,9}c?', 'a.{20,60}b', '(ab|ba|c){2,30}', 'b[^c]{0,200}a'];
    const part = fc.string({ unit: fc.constantFrom('a', 'b', 'b', 'a', 'c', '\n'), maxLength: 120 });
    for (const source of long) {
      const own = new Pattern(source);
      const native = new RegExp(`^(?:${asNative(source).replaceAll('.', '[^\n]')})$`);
      fc.assert(
        fc.property(part, fc.nat(120), (whole, back) => {
          // No pattern matches a line feed: what goes before changes nothing.
          const filler = '\n'.repeat(4096 - back);
          const spans = own.cover(filler + whole).flatMap(({ start, end }) => range(start, end));
          assert.deepEqual(
            spans.map((at) => at - filler.length),
            slowly(own, native, whole, whole.length),
            `${source} in ${JSON.stringify(whole)}, ${back} before the end of a block`,
          );
        }),
        { numRuns: 150 },
      );
    }
  });

  test('finds the same after all that it remembers was forgotten', () => {
    const own = new Pattern('a[^c]{20,60}b');
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % 60;
    };
    const whole = Array.from({ length: 6000 }, () => (random() === 0 ? 'c' : random() < 30 ? 'a' : 'b')).join('');
    const expected = slowly(own, /^a[^c]{20,60}b$/, whole, whole.length);
    assert.ok(expected.length > 1000 && expected.length < 5900, `${expected.length}`);
    assert.deepEqual(
      own.cover(whole).flatMap(({ start, end }) => range(start, end)),
      expected,
    );
  });

  test('never accepts what a regular expression does not: any text is refused with its position, or means the same', () => {
    const noise = fc
      .array(fc.constantFrom(...'ab-]^[\\dDsw().|?{}1,2+*$x'), { maxLength: 9 })
      .map((chars) => chars.join(''));
    let accepted = 0;
    fc.assert(
      fc.property(noise, fc.array(fc.constantFrom(...'ab-]^1 x{}'), { maxLength: 6 }), (pattern, chars) => {
        const problem = patternProblem(pattern);
        // A "]" that comes first is one of the class, as in every shell.
        fc.pre(!/\[\^?\]/.test(pattern));
        if (problem !== undefined)
          return assert.match(problem, /at character \d+: .{5}|matches the empty text|can have|too large/);
        accepted += 1;
        const whole = chars.join('');
        const native = [...whole].some((_, at) =>
          range(at + 1, whole.length + 1).some((end) => new RegExp(`^(?:${pattern})$`).test(whole.slice(at, end))),
        );
        assert.equal(new Pattern(pattern).cover(whole).length > 0, native, `${pattern} in ${JSON.stringify(whole)}`);
      }),
      { numRuns: 20_000 },
    );
    assert.ok(accepted > 1000, `${accepted}`);
  });

  test('text cut into any pieces gives what the whole text gives', () => {
    const hidden = rulesOf(
      ['hunter2'],
      ['x{3,200}y', 'a[^b]{0,40}b', 'ter2-\\d{2}'].map((pattern) => new Pattern(pattern)),
    );
    const word = fc.constantFrom('a', 'b', 'x'.repeat(90), 'y', 'hun', 'ter2', '-1', '2', '\n', ' ', 'key=', 'xx');
    const text = fc.array(word, { maxLength: 40 }).map((words) => words.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.nat(900), { maxLength: 12 }), (whole, cuts) => {
        assert.equal(inPieces(whole, cuts, hidden), redact(whole, hidden));
      }),
      { numRuns: 1500 },
    );
  });

  /** Counts how often a pattern goes from one set of states to the next, and how often that has to be computed. */
  function work(source: string, whole: string): { steps: number; learned: number } {
    const own = new Pattern(source);
    const after = vi.spyOn(Steps.prototype, 'after');
    const learn = vi.spyOn(Steps.prototype, 'learn');
    own.cover(whole);
    const counted = { steps: after.mock.calls.length, learned: learn.mock.calls.length };
    vi.restoreAllMocks();
    return counted;
  }

  const ordinary = [
    '[A-Za-z0-9/+]{40}',
    '[A-Za-z0-9+/]{40,200}',
    '[^x]{1,256}',
    'ghp_[A-Za-z0-9]{36,200}',
    '\\w{1,60}\\W',
  ];
  for (const pattern of ordinary) {
    test(`${pattern} takes two steps for a character, all of them remembered ones, where matches overlap everywhere`, () => {
      const base64 = (bytes: number) =>
        Buffer.from(Array.from({ length: bytes }, (_, i) => (i * i * 7919) >> 3)).toString('base64');
      const short = work(pattern, base64(1_536));
      const long = work(pattern, base64(6_144));
      assert.ok(long.steps <= 8_192 * 2.1, `${long.steps / 8_192} for a character`);
      assert.ok(long.learned <= short.learned * 1.1 + 20, `${short.learned}, ${long.learned}`);
    });
  }

  const hanging = ['(a|a|aa){1,127}b', '(a?){120}c', '[ab]{0,100}a[ab]{150}c', '(a|b|ab|ba|aab|bba|aa|bb){1,80}c'];
  for (const pattern of hanging) {
    test(`${pattern} takes two steps for a character at most, whatever the text`, () => {
      const hostile = Array.from({ length: 6_000 }, (_, i) =>
        i % 500 === 499 ? 'c' : (i * i * 7919) % 11 < 5 ? 'a' : 'b',
      ).join('');
      const { steps } = work(pattern, hostile);
      assert.ok(steps <= hostile.length * 2.1, `${steps / hostile.length}`);
    });
  }

  test('no more is held back than the longest match', () => {
    const redactor = new Redactor(rulesOf([], [new Pattern(`x.{0,${MAX_MATCH_CHARS - 1}}`)]));
    assert.equal(redactor.push('a'.repeat(1000)).length, 1000 - MAX_MATCH_CHARS);
  });
});

describe('a secret in another writing', () => {
  const secret = fc
    .array(
      fc.oneof(
        fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
        fc.constantFrom('ä', '😀', '/', '+', ' '),
      ),
      {
        minLength: 9,
        maxLength: 80,
      },
    )
    .map((chars) => `q${chars.join('')}q`);
  const cuts = fc.array(fc.nat(400), { maxLength: 12 });
  const bytes = fc.uint8Array({ maxLength: 7 }).map((array) => Buffer.from(array));

  test('as base64 among any other bytes, in both alphabets, in any split, nothing of it can be read back', () => {
    fc.assert(
      fc.property(
        secret,
        bytes,
        bytes,
        fc.constantFrom('base64', 'base64url'),
        cuts,
        (value, before, after, alphabet, places) => {
          const encoded = Buffer.concat([before, Buffer.from(value), after]).toString(alphabet as 'base64');
          // A line feed, as KEY= may stand at the end of base64, and goes on behind a space.
          const shown = inPieces(`> ${encoded}\n`, places, rulesOf([value]));
          assert.ok(shown.includes(R), shown);
          // Six bits at each end may be shared with the neighbours.
          const left = shown.slice(2, -1).replace(/=+$/, '').length - R.length;
          assert.ok(left <= Math.ceil(((before.length + after.length) * 8) / 6) + 3, shown);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test('as a part of a URL, strict, plain, as a form, in either case, in any split, it does not show', () => {
    const styles: ((text: string) => string)[] = [
      encodeURIComponent,
      (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
      (text) => new URLSearchParams({ v: text }).toString().slice(2),
      (text) =>
        encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`),
      (text) => encodeURIComponent(text).replaceAll('%2F', '/').replaceAll('%20', '+'),
    ];
    fc.assert(
      fc.property(secret, fc.constantFrom(...styles), cuts, (value, style, places) => {
        assert.equal(inPieces(`u?v=${style(value)}&w`, places, rulesOf([value])), `u?v=${R}&w`);
      }),
      { numRuns: 1500 },
    );
  });

  test('a short secret is searched for as it is, not as letters that stand everywhere', () => {
    assert.equal(redact('YWJjZA abcd', rulesOf(['abcd'])), `YWJjZA ${R}`);
  });
});
