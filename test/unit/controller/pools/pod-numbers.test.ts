import assert from 'node:assert/strict';
import { test } from 'vitest';
import { PodNumbers } from '../../../../controller/pools/pod-numbers.ts';
import { numberOfPod, poolOfPod, poolPodName } from '../../../../core/resources/names.ts';

const UID = '00000000-0000-4000-8000-00000000000a';
const random = (byte: number) => ({ uniform: () => 0, bytes: (length: number) => Buffer.alloc(length, byte) });

test('a number stays the next one until a pod is known to have had it, and then never comes back', () => {
  const numbers = new PodNumbers(random(7));
  const first = numbers.next;
  assert.equal(numbers.next, first);
  // A pod of an earlier leader may have any number.
  for (const other of [first - 1, first + 1, Number.NaN]) numbers.sawPod(other);
  assert.equal(numbers.next, first);
  numbers.sawPod(first);
  numbers.sawPod(first);
  assert.equal(numbers.next, first + 1);
});

test('the largest number makes a name that is a host name, and is read from it again', () => {
  const numbers = new PodNumbers(random(0xff));
  for (let i = 0; i < 3; i++) numbers.sawPod(numbers.next);
  const name = poolPodName(UID, numbers.next);
  assert.match(name, /^p-[0-9a-f-]{36}-[0-9]+$/);
  assert.ok(name.length <= 63);
  assert.deepEqual([poolOfPod(name), numberOfPod(name)], [UID, 2 ** 48 + 2]);
});
