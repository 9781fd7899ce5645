import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Readers } from '../../../../runner/commands/readers.ts';

test('output is kept for the client that has acknowledged least, also after it has gone', () => {
  const readers = new Readers();
  assert.deepEqual([readers.acknowledged, readers.isAttached], [undefined, false]);
  const ahead = { acknowledged: 0 };
  const behind = { acknowledged: 0 };
  readers.add(ahead, 0);
  const slow = readers.add(behind, 0);
  [ahead.acknowledged, behind.acknowledged] = [100, 40];
  assert.equal(readers.acknowledged, 40);
  readers.left(slow);
  assert.deepEqual([readers.acknowledged, readers.isAttached], [40, true]);
  readers.forget(slow);
  assert.equal(readers.acknowledged, 100);
});

test('a client that comes back takes the place of the one that had gone, and of no other', () => {
  const readers = new Readers();
  const [first, second] = [{ acknowledged: 30 }, { acknowledged: 60 }];
  const [one, other] = [first, second].map((attachment) => readers.add(attachment, 0));
  for (const reader of [one, other]) if (reader) readers.left(reader);
  readers.add({ acknowledged: 50 }, 50);
  assert.equal(readers.acknowledged, 50);
  readers.add({ acknowledged: 60 }, 60);
  assert.deepEqual([readers.acknowledged, readers.isAttached], [50, true]);
});

test('a client that is back before the end of its lost connection is seen takes its place', () => {
  const readers = new Readers();
  const lost = readers.add({ acknowledged: 30 }, 0);
  const fromTheBeginning = readers.add({ acknowledged: 20 }, 0);
  readers.add({ acknowledged: 90 }, 60);
  readers.left(lost);
  assert.equal(readers.acknowledged, 20);
  readers.forget(fromTheBeginning);
  assert.equal(readers.acknowledged, 90);
});

test('a client that is back twice before the end of its first connection is seen takes the place of both', () => {
  const readers = new Readers();
  const first = readers.add({ acknowledged: 30 }, 0);
  readers.left(readers.add({ acknowledged: 60 }, 60));
  readers.add({ acknowledged: 90 }, 60);
  readers.left(first);
  assert.equal(readers.acknowledged, 90);
});
