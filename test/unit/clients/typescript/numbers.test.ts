import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { memberText, parseExact, stringifyExact } from '../../../../clients/typescript/src/numbers.ts';

describe('a JSON text', () => {
  const long = '1'.repeat(5_000);
  const values: [string, unknown][] = [
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['-9007199254740993', -9007199254740993n],
    [long, BigInt(long)],
    ['1e-400', '1e-400'],
    ['1e400', '1e400'],
    ['1.00000000000000000001', '1.00000000000000000001'],
    ['0.1', 0.1],
    ['1.0', 1],
    ['1e300', 1e300],
    ['0.10000000000000001', '0.10000000000000001'],
  ];
  for (const [text, value] of values) {
    test(`with ${text.slice(0, 30)} has the value ${String(value).slice(0, 30)}, wherever it stands`, () => {
      assert.deepEqual(parseExact(text), value);
      assert.deepEqual(parseExact(`{"a": [${text} , {"b":${text}}]}`), { a: [value, { b: value }] });
    });
  }

  test('with long digits in strings and keys keeps them as they are', () => {
    const text = '{"9007199254740993":"9007199254740993","\\"9007199254740993":[12345678901234567890,"\\\\"]}';
    assert.deepEqual(parseExact(text), {
      '9007199254740993': '9007199254740993',
      '"9007199254740993': [12345678901234567890n, '\\'],
    });
  });

  test('keeps the number of a member __proto__, and stays a plain object', () => {
    const value = parseExact('{"__proto__":9007199254740993}') as object;
    assert.deepEqual(Object.entries(value), [['__proto__', 9007199254740993n]]);
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
  });

  test('that is none is a SyntaxError, also with long digits', () => {
    for (const text of ['', '{"a":9007199254740993', '"9007199254740993', '[1,]']) {
      assert.throws(() => parseExact(text), SyntaxError, text);
    }
  });

  test('nested 2,000 deep is read', () => {
    assert.doesNotThrow(() => parseExact(`${'['.repeat(2_000)}9007199254740993${']'.repeat(2_000)}`));
  });

  test('of a value with integers of any size has all their digits, and comes back the same', () => {
    const value = { big: -123456789012345678901234567890n, text: '123n', list: [1, 2n ** 64n], none: undefined };
    const text = stringifyExact(value);
    assert.equal(text, '{"big":-123456789012345678901234567890,"text":"123n","list":[1,18446744073709551616]}');
    assert.deepEqual(parseExact(text), { big: value.big, text: '123n', list: value.list });
  });
});

describe('the text of a member', () => {
  test('is that between its colon and what follows, whatever stands around it', () => {
    const text =
      ' { "a" : "}\\"{" , "status":{"x":[1,{"output":2}], "output" : {"n" : 1.0, "s":"\\\\"} ,"z":null},"output":1}';
    assert.equal(memberText(text, 'status', 'output'), '{"n" : 1.0, "s":"\\\\"}');
    assert.equal(memberText(text, 'output'), '1');
    assert.equal(memberText(text, 'status', 'z'), 'null');
    assert.equal(memberText(text, 'a'), '"}\\"{"');
  });

  test('is undefined where there is no such member, and the last of several', () => {
    assert.equal(memberText('{}', 'a'), undefined);
    assert.equal(memberText('[1]', 'a'), undefined);
    assert.equal(memberText('{"a":1}', 'a', 'b'), undefined);
    assert.equal(memberText('{"a":1,"\\u0061":[2]}', 'a'), '[2]');
  });
});
