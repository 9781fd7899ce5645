import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { redactValue } from '../../../../core/result/output.ts';
import { hiddenBy, type Rules } from '../../../../core/text/hidden.ts';
import { Pattern } from '../../../../core/text/pattern.ts';
import { Redactor, redact } from '../../../../core/text/redact.ts';

const R = '[REDACTED]';

/** Rules that redact these secrets in logs. */
const rulesOf = (values: readonly string[], patterns: Pattern[] = []) => hiddenBy({ values, patterns }).logs;
const NOTHING = rulesOf([]);

describe('redaction', () => {
  const table: [sentence: string, text: string, expected: string][] = [
    ['sk- with ten characters is replaced', 'use sk-abc_DEF-90 now', `use ${R} now`],
    ['sk- with nine characters is kept', 'use sk-abcdefghi now', 'use sk-abcdefghi now'],
    ['sk- ends at the first other character', '"sk-0123456789"', `"${R}"`],
    [
      'sk- inside a word is kept',
      'a task-management and risk-assessment plan',
      'a task-management and risk-assessment plan',
    ],
    ['key= is replaced up to the next space, its name kept', 'api_key=a"b,c,d-e f', `api_key=${R} f`],
    [
      'apikey= and accessKey= too',
      'apikey=12345678 accessKey: no, accessKey=12345678',
      `apikey=${R} accessKey: no, accessKey=${R}`,
    ],
    ['TOKEN = is replaced in any case with space around', 'x TOKEN = abcdef ghi', `x TOKEN = ${R} ghi`],
    ['secret= is replaced, the quote before the value kept', 'secret="123456"', `secret="${R}`],
    ['Password= is replaced', 'Password= hunter2\nnext', `Password= ${R}\nnext`],
    ['key= without a value is kept', 'key=\nlong-value', 'key=\nlong-value'],
    [
      'a value of key= of seven characters is kept',
      'max(d, key=d.get)\nsorted(xs, key=lambda x: x[1])',
      'max(d, key=d.get)\nsorted(xs, key=lambda x: x[1])',
    ],
    [
      'a value of password= of five characters is kept',
      'password=None password=False token=null',
      'password=None password=False token=null',
    ],
    [
      'the end of another word is kept',
      'monkey=business-as-usual turkey=12345678',
      'monkey=business-as-usual turkey=12345678',
    ],
    [
      'a comparison is kept',
      'if token == expected_token and key==other_key',
      'if token == expected_token and key==other_key',
    ],
    ['Bearer is kept and what follows replaced', 'Authorization: Bearer abc.def ok', `Authorization: Bearer ${R} ok`],
    ['token=Bearer with its value is replaced', 'token=Bearer abcdef ghi', `token=${R} ${R} ghi`],
    ['two that overlap leave one mark', 'sk-abcdefghijkey=foo bar', `${R}=foo bar`],
    [
      'what was replaced before stays as it is',
      `api_key=${R} password="${R} Bearer ${R}`,
      `api_key=${R} password="${R} Bearer ${R}`,
    ],
    [
      'ordinary text is kept',
      'the keys are on the table, a token of secrecy',
      'the keys are on the table, a token of secrecy',
    ],
  ];
  for (const [sentence, text, expected] of table) test(sentence, () => assert.equal(redact(text, NOTHING), expected));

  test('the exact value of a secret is replaced, also as JSON writes it and without its line feed', () => {
    const secrets = rulesOf(['line one\nline "two"\n']);
    assert.equal(redact('a line one\nline "two" b', secrets), `a ${R} b`);
    assert.equal(redact(JSON.stringify({ v: 'line one\nline "two"\n' }), secrets), `{"v":"${R}\\n"}`);
  });

  test('secrets that overlap are replaced as one', () => {
    assert.equal(redact('..abcdef..', rulesOf(['abcd', 'cdef'])), `..${R}..`);
  });

  test('a value of nothing but space, or of less than four characters, replaces nothing', () => {
    const text = 'line 1\nline 12 \n';
    assert.equal(redact(text, rulesOf(['', '\n', ' ', ' \n', '1', 'li', ' 1\n', 'ine\n'])), text);
    assert.equal(redact(text, rulesOf(['line'])), `${R} 1\n${R} 12 \n`);
  });

  test('a secret is known as JavaScript, Python, Go and PHP write it in JSON', () => {
    const secrets = rulesOf(['p&ss<wörd>/12']);
    for (const written of [
      'p&ss<wörd>/12',
      'p\\u0026ss\\u003cwörd\\u003e/12',
      'p&ss<w\\u00f6rd>/12',
      'p&ss<wörd>\\/12',
      'p&ss<w\\u00f6rd>\\/12',
    ]) {
      assert.equal(redact(`{"p":"${written}"}`, secrets), `{"p":"${R}"}`, written);
    }
  });

  test('a secret number is known as it is written once JSON was read, however many digits it had', () => {
    for (const secret of ['8412907734', '84129077341234567890123', '8412907734.50', '-8412907734']) {
      const read: unknown = JSON.parse(secret);
      assert.equal(redactValue(read, rulesOf([secret])), R, `${read}`);
    }
    assert.deepEqual(redactValue([1.5, 10, '1.5'], rulesOf(['1.50'])), [1.5, 10, '1.5']);
  });

  test('of many numbers each is held only against what a number can show', () => {
    let looks = 0;
    const counted = (secrets: Rules) =>
      new Proxy(secrets, {
        get: (forms, key) => {
          looks += 1;
          return Reflect.get(forms, key);
        },
      });
    const numbers = Array.from({ length: 1000 }, (_, i) => i);
    for (const [secrets, shown] of [
      [rulesOf(['correct horse', '-1.5e+300x']), 77123456],
      [rulesOf(['correct horse', '77123456']), R],
      [rulesOf(['correct horse'], [new Pattern('77\\d{6}')]), R],
    ] as const) {
      const hidden = counted(secrets);
      looks = 0;
      assert.equal(redactValue(77123456, hidden), shown);
      const once = looks;
      assert.ok(once > 0);
      assert.deepEqual(redactValue(numbers, hidden), numbers);
      assert.equal(looks, once, 'the secrets are gone through once');
    }
  });

  test('text cut into any pieces gives what the whole text gives', () => {
    const word = fc.constantFrom(
      'sk-',
      'sk-abcdefghij',
      'key=',
      'KEY',
      '=',
      ' ',
      '\n',
      '\t',
      'token = ',
      'password=x',
      'Bearer ',
      'Bear',
      'er',
      'hunter2',
      'hun',
      'ter2',
      'two\nlines',
      'two',
      '\nlines',
      'x',
      '😀',
      'aaa',
      'a',
      'secret=',
      'mon',
      'api',
      '"',
      '-0123456789',
    );
    const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(''));
    const secrets = fc.constantFrom([], ['hunter2'], ['hunter2', 'two\nlines'], ['aaaa', 'aaxa', '😀x😀']);
    fc.assert(
      fc.property(text, secrets, fc.array(fc.nat(240), { maxLength: 12 }), (whole, values, cuts) => {
        const forms = rulesOf(values);
        const redactor = new Redactor(forms);
        let result = '';
        let at = 0;
        for (const cut of [...cuts].sort((a, b) => a - b)) {
          result += redactor.push(whole.slice(at, Math.max(at, cut)));
          at = Math.max(at, cut);
        }
        result += redactor.push(whole.slice(at)) + redactor.end();
        assert.equal(result, redact(whole, forms));
        for (const secret of values) assert.ok(!result.includes(secret) || R.includes(secret), secret);
      }),
      { numRuns: 3000 },
    );
  });

  for (const [how, lineBreak] of [
    ['line feeds', '\n'],
    ['CRLF and indentation', '\r\n \t  '],
    ['line feeds as JSON writes them', '\\n'],
    ['CRLF as JSON writes it', '\\r\\n'],
  ] as const) {
    test(`a secret in base64, or hexadecimal, over several lines is replaced in any column: ${how}`, () => {
      const value = 'correct/horse battery+st?ple~~ÿ';
      const key = '00ffee0123456789abcdef0123456789abcdef42';
      const forms = rulesOf([value, key]);
      for (const columns of [1, 2, 60, 76]) {
        for (let before = 0; before < 60; before++) {
          const bytes = Buffer.from(`${'.'.repeat(before)}${value}${'.'.repeat(50)}`);
          const base64 = bytes.toString('base64');
          const first = Math.ceil((before * 8) / 6);
          const last = Math.floor(((before + Buffer.byteLength(value)) * 8) / 6);
          const hex = `${'0'.repeat(before)}${key}${'0'.repeat(50)}`;
          for (const [text, from, to] of [
            [base64, first, last],
            [base64.replaceAll('+', '-').replaceAll('/', '_'), first, last],
            [hex, before, before + key.length],
          ] as const) {
            const letters = text.split('');
            const written = (start: number, end: number) =>
              letters.slice(start, end).map((letter, i) => letter + ((start + i + 1) % columns === 0 ? lineBreak : ''));
            const lines = written(0, text.length).join('');
            // The first one or two characters before a line break can be left.
            const inLine = columns - (from % columns);
            const shown = [1, 2].filter((n) => n % columns === inLine % columns && n < 3).pop() ?? 0;
            const expected = `${written(0, from + shown).join('')}${R}`;
            const redactor = new Redactor(forms);
            let result = '';
            for (const piece of lines.match(/.{1,7}/gs) ?? []) result += redactor.push(piece);
            result += redactor.end();
            assert.equal(result, redact(lines, forms));
            assert.ok(result.startsWith(expected), `${columns} columns, ${before} before: ${JSON.stringify(result)}`);
            const rest = lines.slice(written(0, to - 1).join('').length + 1);
            assert.equal(result, expected + rest, `${columns} columns, ${before} before`);
          }
        }
      }
    });
  }

  test('no released piece ends within a character', () => {
    const redactor = new Redactor(NOTHING);
    for (let i = 0; i < 300; i++) {
      const piece = redactor.push(i % 2 ? '😀' : '😀x');
      assert.ok(piece.isWellFormed());
    }
  });

  test('a match longer than what is held back is replaced once', () => {
    const redactor = new Redactor(NOTHING);
    let result = '';
    for (const piece of ['a token=', ...Array<string>(50).fill('x'.repeat(100)), ' b']) result += redactor.push(piece);
    assert.equal(result + redactor.end(), `a token=${R} b`);
  });

  test('a line without an end is held back no further than the longest writing of a secret', () => {
    const forms = rulesOf(['s'.repeat(200)]);
    const longest = Math.max(...forms.texts.map(({ length }) => length));
    const redactor = new Redactor(forms);
    let released = 0;
    for (let i = 0; i < 100; i++) released += redactor.push('x'.repeat(1000)).length;
    assert.equal(released, 100_000 - longest);
  });
});
