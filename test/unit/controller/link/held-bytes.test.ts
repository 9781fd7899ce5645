import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { HeldBytes, type Holder } from '../../../../controller/link/held-bytes.ts';
import { nothingKept } from '../../../../controller/link/pod-counters.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MiB = 1024 * 1024;

function setUp(maxBytes = 100 * MiB, reservedBytes = 0) {
  const clock = new VirtualClock();
  const counters = nothingKept();
  const held = new HeldBytes(clock, { counters, maxBytes, reservedBytes });
  const told: string[] = [];
  const complete = new Set<string>();
  const open = (name: string): Holder =>
    held.open({
      isComplete: () => complete.has(name),
      onRoom: (ms) => told.push(`${name} has room after ${ms}`),
      onLost: () => told.push(`${name} lost its place`),
    });
  return { clock, counters, held, told, complete, open };
}

describe('memory for what pods have sent', () => {
  test('is taken until it is full, and those that wait get it in their order', async () => {
    const { clock, held, told, open, counters } = setUp();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(open) as [Holder, Holder, Holder, Holder];
    assert.deepEqual(
      [a.take(60 * MiB), b.take(60 * MiB), c.take(60 * MiB), d.take(30 * MiB)],
      [...['Taken', 'Wait', 'Wait', 'Wait']],
    );
    assert.deepEqual([held.bytes, counters.waitedForMemory, d.take(1)], [60 * MiB, 3, 'Wait']);
    await clock.advance(5_000);
    a.keep(0);
    assert.deepEqual([told, b.isWaiting, c.waitedMs], [['b has room after 5000'], false, 5_000]);
    b.close();
    assert.deepEqual(told.slice(1), ['c has room after 5000', 'd has room after 5000']);
    for (const holder of [c, d]) holder.close();
    assert.deepEqual([held.bytes, clock.pending], [0, 0]);
  });

  test('is not more than a part for one pod', () => {
    const a = setUp(1000 * MiB).open('a');
    assert.equal(a.take(100 * MiB), 'Taken');
    a.keep(100 * MiB);
    assert.deepEqual([a.take(45 * MiB), a.take(40 * MiB), a.bytes], ['TooLarge', 'Taken', 140 * MiB]);
  });

  test('is there above the limit for a small message of a pod that has its place, and for none that has not', () => {
    const { open } = setUp();
    const [a, b, c] = ['a', 'b', 'c'].map(open) as [Holder, Holder, Holder];
    a.take(50 * MiB);
    b.take(50 * MiB);
    a.keep(50 * MiB);
    assert.deepEqual([c.take(MiB), a.take(3 * MiB)], ['Wait', 'Wait']);
    b.keep(50 * MiB);
    assert.deepEqual([b.take(MiB), b.bytes], ['Taken', 51 * MiB]);
  });

  test('is given up after 30 s by those that have nothing whole in it while others wait, the largest first', async () => {
    const { clock, told, complete, open } = setUp();
    const [whole, small, large, late] = ['whole', 'small', 'large', 'late'].map(open) as [
      Holder,
      ...Holder[],
    ] as Holder[];
    complete.add('whole');
    whole!.take(40 * MiB);
    small!.take(20 * MiB);
    large!.take(40 * MiB);
    await clock.advance(3_600_000);
    assert.deepEqual(told, [], 'nobody waits');
    late!.take(30 * MiB);
    await clock.advance(1);
    assert.deepEqual(told, ['large lost its place', 'late has room after 1']);
    assert.ok(large!.isWaiting);
    late!.close();
    assert.deepEqual(told.slice(2), ['large has room after 0']);
    assert.equal(small!.isWaiting, false);
  });

  test('goes first to those that have not lost their place', async () => {
    const { clock, told, open } = setUp();
    const [a, b, c] = ['a', 'b', 'c'].map(open) as [Holder, Holder, Holder];
    a.take(90 * MiB);
    b.take(90 * MiB);
    await clock.advance(30_000);
    assert.deepEqual(told, ['a lost its place', 'b has room after 30000']);
    assert.equal(c.take(90 * MiB), 'Wait');
    b.close();
    assert.deepEqual(told.at(-1), 'c has room after 0');
    await clock.advance(30_000);
    assert.deepEqual(told.slice(3), ['c lost its place', 'a has room after 30000']);
  });

  test('has a part for pods that hold little, which large messages leave free and others do not wait for', async () => {
    const { told, open, clock } = setUp(100 * MiB, 10 * MiB);
    const [large, other, ...modest] = ['large', 'other', 'm1', 'm2', 'm3'].map(open) as [Holder, Holder, ...Holder[]];
    assert.deepEqual([large.take(90 * MiB), other.take(5 * MiB)], ['Taken', 'Wait']);
    assert.deepEqual(
      modest.map((pod) => pod.take(4 * MiB)),
      ['Taken', 'Taken', 'Wait'],
    );
    modest[0]?.keep(0);
    await clock.advance(0);
    assert.deepEqual(told, ['m3 has room after 0']);
  });

  test('is given up after 3 s by those that hold more than an equal part to one that wants less', async () => {
    const { clock, told, open } = setUp();
    const pods = ['a', 'b', 'c'].map(open) as [Holder, Holder, Holder];
    pods[0].take(60 * MiB);
    pods[1].take(30 * MiB);
    pods[2].take(20 * MiB);
    await clock.advance(2_999);
    assert.deepEqual(told, []);
    await clock.advance(1);
    assert.deepEqual(told, ['a lost its place', 'c has room after 3000']);
  });
});
