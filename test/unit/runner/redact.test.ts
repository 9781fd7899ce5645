import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Redactor, redact, secretForms } from '../../../runner/text/redact.ts';

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

  test('an empty secret replaces nothing', () => assert.equal(redact('abc', secretForms(['', '\n'])), 'abc'));

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
    const secrets = fc.constantFrom([], ['hunter2'], ['hunter2', 'two\nlines'], ['aa', 'xa', '😀x']);
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
        for (const secret of forms) assert.ok(!result.includes(secret) || R.includes(secret), secret);
      }),
      { numRuns: 3000 },
    );
  });

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

  test('a line without an end is held back no further than the longest secret', () => {
    const redactor = new Redactor(secretForms(['s'.repeat(200)]));
    let released = 0;
    for (let i = 0; i < 100; i++) released += redactor.push('x'.repeat(1000)).length;
    assert.equal(released, 100_000 - 200);
  });
});
