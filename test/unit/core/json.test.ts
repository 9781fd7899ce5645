import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { packMessage, unpackMessage } from '../../../core/frames/wire.ts';
import { canonicalJson, isDouble, isInt64, isRawNumber, lostNumber, parseExact } from '../../../core/json.ts';
import { eventLine, parseEventLine } from '../../../core/pod-log/agent-events.ts';
import { parseEnvelope } from '../../../core/result/envelope.ts';
import { redactValue } from '../../../core/result/output.ts';
import { hiddenBy } from '../../../core/text/hidden.ts';

const NO_SECRETS = hiddenBy({});
const MAX_INT64 = 2n ** 63n - 1n;
const again = (text: string) => JSON.stringify(parseExact(text));

/** Numbers as JSON has them: of 64 bits, longer ones, and with fraction and exponent. */
const int64 = fc.bigInt({ min: -MAX_INT64 - 1n, max: MAX_INT64 }).map(String);
const digits = fc.stringMatching(/^[0-9]{1,30}$/);
const decimal = fc
  .tuple(fc.constantFrom('', '-'), fc.bigInt({ min: 0n, max: 10n ** 25n }), digits, fc.integer({ min: -400, max: 400 }))
  .map(([sign, whole, fraction, exponent]) => `${sign}${whole}.${fraction}e${exponent}`);
const double = fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => JSON.stringify(value));

/** A text, and the same text as it has to come out: a number that a double holds is written in the shortest form. */
interface Both {
  text: string;
  out: string;
}

const number = fc
  .oneof(int64, decimal, double)
  .map((text) => ({ text, out: isDouble(text) ? JSON.stringify(Number(text)) : text }));
const string = fc
  .oneof(fc.string({ unit: 'binary' }), decimal, fc.constant(':12345678901234567890,'))
  .map((value) => ({ text: JSON.stringify(value), out: JSON.stringify(value) }));
const key = fc
  .oneof(
    fc.string(),
    int64.map((text) => `k${text}`),
  )
  .filter((text) => !/^(0|[1-9]\d*|__proto__)$/.test(text));
const list = (items: Both[]) => ({
  text: `[ ${items.map(({ text }) => text).join(' ,\n')}]`,
  out: `[${items.map(({ out }) => out).join(',')}]`,
});
const object = (fields: [string, Both][]) => ({
  text: `{${fields.map(([name, { text }]) => `${JSON.stringify(name)} : ${text}`).join(', ')}}`,
  out: `{${fields.map(([name, { out }]) => `${JSON.stringify(name)}:${out}`).join(',')}}`,
});
const { json } = fc.letrec<{ json: Both }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    number,
    string,
    fc.array(tie('json')).map(list),
    fc.uniqueArray(fc.tuple(key, tie('json')), { selector: ([name]) => name }).map(object),
  ),
}));

describe('JSON without rounding', () => {
  test('any JSON is written as it was read, digit for digit', () => {
    fc.assert(fc.property(json, ({ text, out }) => assert.equal(again(text), out)));
  });

  test('every hop of an input, an output and an event keeps every digit', () => {
    fc.assert(
      fc.property(json, ({ text, out }) => {
        const value = parseExact(text);
        const packed = unpackMessage(packMessage({ output: value }));
        assert.equal(JSON.stringify(packed?.message.output), out);
        const line = eventLine({ seq: 1, turn: 't', at: 'now', event: value }).trimEnd();
        assert.equal(JSON.stringify(parseEventLine(line)?.event), out);
        assert.equal(JSON.stringify(redactValue(value, NO_SECRETS.outputs)), out);
        const { output } = parseEnvelope(`{"status":"success","output":${text}}`, 'the result', NO_SECRETS);
        assert.equal(JSON.stringify(output), out);
      }),
    );
  });

  test('a number that a double holds stays a number, the others are kept as their text', () => {
    for (const held of ['0', '-0', '1', '0.1', '1.0', '1e2', '9007199254740992', '1e308', '12345678901234567000']) {
      assert.equal(typeof parseExact(held), 'number', held);
    }
    const others = ['9007199254740993', '9223372036854775808', '1e999', '1e-400', '0.1234567890123456789012'];
    for (const other of [...others, '1.00000000000000000001', '-12345678901234567890']) {
      assert.ok(isRawNumber(parseExact(other)), other);
      assert.equal(again(`[${other}, {"a":${other}}]`), `[${other},{"a":${other}}]`);
    }
  });

  test('an integer of 64 bits is told from one that has more', () => {
    for (const text of ['0', '-1', String(MAX_INT64), String(-MAX_INT64 - 1n)]) assert.ok(isInt64(text), text);
    for (const text of [String(MAX_INT64 + 1n), String(-MAX_INT64 - 2n), '1.5', '1e3', '1'.repeat(40)]) {
      assert.ok(!isInt64(text), text);
    }
  });

  test('digits in strings and keys are left alone, escaped quotes and backslashes before them too', () => {
    const text = String.raw`{"a\": 12345678901234567890":"\\","b\\":[",12345678901234567890\\\""],"c":12345678901234567890}`;
    assert.equal(again(text), text);
  });

  test('text that JSON.parse refuses is refused, also with a number that a double cannot hold', () => {
    const wrong = [
      '{12345678901234567890: 1}',
      '[12345678901234567890x]',
      '[-12345678901234567890.]',
      '012345678901234567',
      '',
    ];
    for (const text of wrong) assert.throws(() => parseExact(text), SyntaxError, text);
  });

  test('a text nested a hundred thousand deep is read', () => {
    const text = `${'['.repeat(100_000)}12345678901234567890${']'.repeat(100_000)}`;
    let value = parseExact(text);
    while (Array.isArray(value)) [value] = value;
    assert.equal(JSON.stringify(value), '12345678901234567890');
    assert.equal(lostNumber(parseExact(text))?.number, '12345678901234567890');
  });

  test('the first number that an API server would round is named with its path', () => {
    const lost = (text: string) => lostNumber(parseExact(text));
    assert.deepEqual(lost('{"a":9007199254740993,"b":[0.1,{"c d":[1e999]},12345678901234567890]}'), {
      path: 'b[1]["c d"][0]',
      number: '1e999',
    });
    assert.deepEqual(lost('12345678901234567890'), { path: '', number: '12345678901234567890' });
    for (const kept of ['9223372036854775807', '-9223372036854775808', '0.1', '[1e300]', '{"rawJSON":"1e999"}']) {
      assert.equal(lost(kept), undefined, kept);
    }
  });

  test('equal numbers are deeply equal, and their canonical text is the same', () => {
    const one = parseExact('{"a":9007199254740993,"b":{"d":1,"c":2}}');
    assert.deepEqual(one, parseExact('{"b":{"c":2,"d":1},"a":9007199254740993}'));
    assert.notDeepEqual(one, parseExact('{"b":{"c":2,"d":1},"a":9007199254740992}'));
    assert.equal(canonicalJson(one), '{"a":9007199254740993,"b":{"c":2,"d":1}}');
  });
});
