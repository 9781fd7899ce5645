import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson, parseJson } from '../../../api/json.ts';
import { Problem } from '../../../api/problems.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const isInvalid = (error: unknown) => error instanceof Problem && error.code === 'InvalidJson';

describe('JSON of requests', () => {
  test('any JSON within the depth is taken as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepEqual(parseJson(JSON.stringify(value)), JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('100 levels are taken, 101 are refused, brackets in strings do not count', () => {
    parseJson(nested(100));
    assert.throws(() => parseJson(nested(101)), isInvalid);
    parseJson(JSON.stringify({ text: `\\"${nested(200)}` }));
  });

  test('no text is no body, and what is no JSON is refused', () => {
    assert.equal(parseJson(' \n'), undefined);
    assert.throws(() => parseJson('{"a":'), isInvalid);
  });

  test('the canonical text is the same for any order of keys, and another for another value', () => {
    assert.equal(
      canonicalJson({ a: 1, b: { d: [1, 2], c: null } }),
      canonicalJson({ b: { c: null, d: [1, 2] }, a: 1 }),
    );
    assert.notEqual(canonicalJson({ a: [1, 2] }), canonicalJson({ a: [2, 1] }));
  });
});
