import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { showSession, showTurn } from '../../../../api/answers/present.ts';
import { Problem } from '../../../../api/problems/problems.ts';
import { checkInput } from '../../../../api/requests/checks.ts';
import { parseJson } from '../../../../api/requests/json.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const isInvalid = (error: unknown) => error instanceof Problem && error.code === 'InvalidJson';

describe('JSON of requests', () => {
  test('any JSON within the depth is taken as it is, but for the key "__proto__"', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!JSON.stringify(value).includes('"__proto__":'));
        assert.deepEqual(parseJson(JSON.stringify(value)), JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('the key "__proto__" is refused by its field where keys have a meaning, and taken in what an agent gets', () => {
    for (const [text, field] of [
      ['{"metadata":{"labels":{"__proto__":"x"}}}', 'metadata.labels.__proto__'],
      ['{"metadata":{"annotations":{"\\u005f_proto__":"x"}}}', 'metadata.annotations.__proto__'],
      ['{"spec":{"agent":{"env":[{"__proto__":1}]}}}', 'spec.agent.env.0.__proto__'],
      ['{"__proto__":1}', '__proto__'],
    ] as const) {
      assert.throws(
        () => parseJson(text),
        (error: unknown) => {
          const { code, errors } = (error as Problem).toJSON();
          assert.deepEqual([code, errors?.[0]?.field], ['Invalid', field]);
          return true;
        },
      );
    }
    for (const text of [
      '{"spec":{"input":{"__proto__":1}}}',
      '{"spec":{"response":[{"__proto__":1}]}}',
      '["__proto__"]',
    ])
      assert.equal(JSON.stringify(parseJson(text)), text);
  });

  test('a byte order mark is refused by its name, also before nothing', () => {
    for (const text of ['\uFEFF{}', '\uFEFF', '\uFEFF  '])
      assert.throws(() => parseJson(text), /begins with a byte order mark; send JSON in UTF-8 without one/);
    assert.equal(parseJson(' \t\r\n'), undefined);
  });

  test('half of a surrogate pair is refused by its field', () => {
    for (const [text, field] of [
      ['{"spec":{"input":["\\ud800"]}}', 'spec.input[0]'],
      ['{"spec":{"input":{"a":{"\\udfff":1}}}}', 'spec.input.a["\\udfff"]'],
      ['{"metadata":{"labels":{"team":"\\udc00x"}}}', 'metadata.labels.team'],
    ] as const) {
      assert.throws(
        () => parseJson(text),
        (error: unknown) => {
          const { code, errors, detail } = (error as Problem).toJSON();
          assert.deepEqual([code, errors?.[0]?.field], ['TextNotUnicode', field]);
          assert.match(detail, /half of a surrogate pair .*write whole characters, or bytes as base64\.$/);
          return true;
        },
      );
    }
    assert.deepEqual(parseJson('["\\ud83d\\ude00"]'), ['😀']);
  });

  test('what is no JSON is told by its place, and never quoted', () => {
    for (const [text, detail] of [
      ['{"spec": {"input": NaN}}', 'The body is no JSON: line 1, column 20: JSON has no NaN; write null or a string.'],
      ['{"token": "hidden",}', 'The body is no JSON: line 1, column 20: expected a key in double quotes, found "}".'],
    ] as const) {
      assert.throws(() => parseJson(text), { message: detail });
    }
  });

  test('text that is nested too deep is refused with the position; brackets in strings do not count', () => {
    const isTooDeep = (error: unknown) => {
      const { code, errors } = (error as Problem).toJSON();
      return code === 'InputTooDeep' && /^spec\.input\[0\]/.test(errors?.[0]?.field ?? '');
    };
    assert.throws(() => parseJson(`{"spec":{"input":${nested(71)}}}`), isTooDeep);
    assert.throws(() => parseJson(`{"spec":{"input":${nested(60_000)}}}`), isTooDeep);
    parseJson(`{"spec":{"input":${nested(70)}}}`);
    parseJson(JSON.stringify({ text: `\\"${nested(200)}` }));
  });

  test('an input of 64 levels is taken, one of 65 is refused by its field', () => {
    checkInput(parseJson(nested(64)));
    assert.throws(
      () => checkInput(parseJson(nested(65))),
      (error: unknown) => {
        const { status, code, errors } = (error as Problem).toJSON();
        assert.deepEqual([status, code, errors?.[0]?.field], [422, 'InputTooDeep', 'spec.input']);
        return true;
      },
    );
  });

  test('objects that kubectl has stored are shown without values that are nested too deep', () => {
    const metadata = { name: 't', uid: 'u', resourceVersion: '1', creationTimestamp: 'x' };
    const turn = { metadata, spec: { session: 's', cancel: false, input: JSON.parse(nested(60_000)) } };
    assert.match(JSON.stringify(showTurn(turn as never)), /"input":"\(nested too deep to be shown\)"/);
    assert.match(JSON.stringify(showSession(turn as never)), /"input":"\(nested too deep to be shown\)"/);
  });

  test('no text is no body, and what is no JSON is refused', () => {
    assert.equal(parseJson(' \n'), undefined);
    assert.throws(() => parseJson('{"a":'), isInvalid);
  });

  test('a number that cannot be kept exactly is refused with its path', () => {
    const refused = (text: string) => {
      try {
        parseJson(text);
      } catch (error) {
        return (error as Problem).toJSON();
      }
      return assert.fail(`${text} was taken`);
    };
    const lost = ['12345678901234567890', '9223372036854775808', '1e999', '0.1234567890123456789012'];
    for (const number of lost) {
      const message = `the number ${number} cannot be kept exactly; send it as a string: "${number}"`;
      const { status, code, detail, errors } = refused(`{"spec":{"input":{"ids":[7,${number}]}}}`);
      assert.deepEqual({ status, code }, { status: 422, code: 'NumberNotExact' });
      assert.equal(detail, `spec.input.ids[1]: ${message}`);
      assert.deepEqual(errors, [{ field: 'spec.input.ids[1]', message }]);
    }
    for (const kept of ['9007199254740993', '9223372036854775807', '-9223372036854775808', '0.1', '1e300']) {
      parseJson(kept);
    }
  });
});
