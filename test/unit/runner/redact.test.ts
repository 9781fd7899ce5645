import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { redactValue } from '../../../core/result/output.ts';
import { Pattern } from '../../../core/text/pattern.ts';
import { type Hidden, Redactor, redact, secretForms } from '../../../core/text/redact.ts';

const R = '[REDACTED]';

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
    ['key= is replaced up to the next space', 'api_key=a"b,c d', `api_${R} d`],
    ['TOKEN = is replaced in any case with space around', 'x TOKEN = abc def', `x ${R} def`],
    ['secret= is replaced', 'secret=1', R],
    ['Password= is replaced', 'Password= hunter2\nnext', `${R}\nnext`],
    ['key= without a value is kept', 'key=\nvalue', 'key=\nvalue'],
    ['Bearer and what follows is replaced', 'Authorization: Bearer abc.def ok', `Authorization: ${R} ok`],
    ['token=Bearer with its value is replaced whole', 'token=Bearer abc def', `${R} def`],
    ['two that overlap leave one mark', 'sk-abcdefghijkey=foo bar', `${R} bar`],
    [
      'ordinary text is kept',
      'the keys are on the table, a token of secrecy',
      'the keys are on the table, a token of secrecy',
    ],
  ];
  for (const [sentence, text, expected] of table) test(sentence, () => assert.equal(redact(text, []), expected));

  test('the exact value of a secret is replaced, also as JSON writes it and without its line feed', () => {
    const secrets = secretForms(['line one\nline "two"\n']);
    assert.equal(redact('a line one\nline "two" b', secrets), `a ${R} b`);
    assert.equal(redact(JSON.stringify({ v: 'line one\nline "two"\n' }), secrets), `{"v":"${R}\\n"}`);
  });

  test('secrets that overlap are replaced as one', () => {
    assert.equal(redact('..abcdef..', secretForms(['abcd', 'cdef'])), `..${R}..`);
  });

  test('a value of nothing but space, or of less than four characters, replaces nothing', () => {
    const text = 'line 1\nline 12 \n';
    assert.equal(redact(text, secretForms(['', '\n', ' ', ' \n', '1', 'li', ' 1\n', 'ine\n'])), text);
    assert.equal(redact(text, secretForms(['line'])), `${R} 1\n${R} 12 \n`);
  });

  test('a secret is known as JavaScript, Python, Go and PHP write it in JSON', () => {
    const secrets = secretForms(['p&ss<wörd>/12']);
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
      assert.equal(redactValue(read, secretForms([secret])), R, `${read}`);
    }
    assert.deepEqual(redactValue([1.5, 10, '1.5'], secretForms(['1.50'])), [1.5, 10, '1.5']);
  });

  test('of many numbers each is held only against what a number can show', () => {
    let looks = 0;
    const counted = (secrets: Hidden) =>
      new Proxy(secrets, {
        get: (forms, key) => {
          looks += 1;
          return Reflect.get(forms, key);
        },
      });
    const numbers = Array.from({ length: 1000 }, (_, i) => i);
    for (const [secrets, shown] of [
      [secretForms(['correct horse', '-1.5e+300x']), 77123456],
      [secretForms(['correct horse', '77123456']), R],
      [secretForms(['correct horse'], [new Pattern('77\\d{6}')]), R],
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
    );
    const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(''));
    const secrets = fc.constantFrom([], ['hunter2'], ['hunter2', 'two\nlines'], ['aaaa', 'aaxa', '😀x😀']);
    fc.assert(
      fc.property(text, secrets, fc.array(fc.nat(240), { maxLength: 12 }), (whole, values, cuts) => {
        const forms = secretForms(values);
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
      const forms = secretForms([value, key]);
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
            // One or two before the first line break can be left.
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
    const redactor = new Redactor([]);
    for (let i = 0; i < 300; i++) {
      const piece = redactor.push(i % 2 ? '😀' : '😀x');
      assert.ok(piece.isWellFormed());
    }
  });

  test('a match longer than what is held back is replaced once', () => {
    const redactor = new Redactor([]);
    let result = '';
    for (const piece of ['a token=', ...Array<string>(50).fill('x'.repeat(100)), ' b']) result += redactor.push(piece);
    assert.equal(result + redactor.end(), `a ${R} b`);
  });

  test('a line without an end is held back no further than the longest writing of a secret', () => {
    const forms = secretForms(['s'.repeat(200)]);
    const longest = Math.max(...forms.map((form) => (typeof form === 'string' ? form.length : 0)));
    const redactor = new Redactor(forms);
    let released = 0;
    for (let i = 0; i < 100; i++) released += redactor.push('x'.repeat(1000)).length;
    assert.equal(released, 100_000 - longest);
  });
});
