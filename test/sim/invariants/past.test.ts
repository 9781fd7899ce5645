import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Past, Pasts } from './past.ts';

test('a past has every value that held since a moment, with the one of that moment', () => {
  const past = new Past<string>();
  past.becomes('a', 0);
  past.becomes('b', 10);
  past.becomes('b', 15);
  past.becomes('c', 20);
  assert.deepEqual(past.since(0), ['a', 'b', 'c']);
  assert.deepEqual(past.since(12), ['b', 'c']);
  assert.deepEqual(past.since(21), ['c']);
});

test('what was not there at first has that in its past', () => {
  const pasts = new Pasts<string | undefined>();
  pasts.becomes('x', undefined, 0);
  pasts.becomes('x', 'a', 10);
  assert.deepEqual(pasts.since('x', 5), [undefined, 'a']);
  assert.deepEqual(pasts.since('x', 11), ['a']);
  assert.deepEqual(pasts.since('y', 0), []);
});
