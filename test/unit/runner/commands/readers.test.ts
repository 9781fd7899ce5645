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
  slow.isGone = true;
  assert.deepEqual([readers.acknowledged, readers.isAttached], [40, true]);
  readers.forget(slow);
  assert.equal(readers.acknowledged, 100);
});

test('a client that comes back takes the place of the one that had gone, and of no other', () => {
  const readers = new Readers();
  const [first, second] = [{ acknowledged: 30 }, { acknowledged: 60 }];
  for (const attachment of [first, second]) readers.add(attachment, 0).isGone = true;
  readers.add({ acknowledged: 50 }, 50);
  assert.equal(readers.acknowledged, 50);
  readers.add({ acknowledged: 60 }, 60);
  assert.deepEqual([readers.acknowledged, readers.isAttached], [50, true]);
});
