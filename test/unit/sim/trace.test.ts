import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Trace } from '../../sim/trace.ts';

test('a digest does not depend on the order of an object’s keys, and does on everything else', () => {
  const digestOf = (...objects: object[]) => {
    const trace = new Trace({ time: () => 0, digest: true });
    for (const object of objects) trace.object(object);
    return trace.digest();
  };
  assert.equal(digestOf({ a: 1, b: { c: 2, d: [3, 4] } }), digestOf({ b: { d: [3, 4], c: 2 }, a: 1 }));
  assert.notEqual(digestOf({ a: [3, 4] }), digestOf({ a: [4, 3] }));
  assert.notEqual(digestOf({ a: 1 }, { b: 1 }), digestOf({ b: 1 }, { a: 1 }));
});
