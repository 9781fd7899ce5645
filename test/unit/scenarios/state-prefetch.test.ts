import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { StatePrefetch } from '../../../controller/act/state-prefetch.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const MiB = 2 ** 20;
const aState = (seq: number, bytes = MiB): StateRef => ({
  ref: 'r',
  digest: 'd',
  keyId: 'k',
  bytes,
  incarnation: 1,
  seq,
});

describe('a state that is read ahead', () => {
  test('is had once, by its session and for this state alone', async () => {
    const ahead = new StatePrefetch(new VirtualClock());
    ahead.begin('s', aState(1), async () => Buffer.from('sealed'));
    assert.equal(ahead.take('s', aState(2)), undefined);
    assert.equal(ahead.take('other', aState(1)), undefined);
    assert.equal(String(await ahead.take('s', aState(1))), 'sealed');
    assert.equal(ahead.take('s', aState(1)), undefined);
  });

  test('is read once, however often it is begun', () => {
    const ahead = new StatePrefetch(new VirtualClock());
    let reads = 0;
    const read = async () => Buffer.alloc(++reads);
    for (let i = 0; i < 3; i++) ahead.begin('s', aState(1), read);
    assert.equal(reads, 1);
  });

  test('that cannot be read fails where it is taken, and nowhere else', async () => {
    const ahead = new StatePrefetch(new VirtualClock());
    ahead.begin('s', aState(1), () => Promise.reject(new Error('gone')));
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(async () => ahead.take('s', aState(1)), /gone/);
  });

  test('is left out where 32 MiB are held, until some are taken or were held for 30 s', async () => {
    const clock = new VirtualClock();
    const ahead = new StatePrefetch(clock);
    const read = async () => Buffer.alloc(0);
    ahead.begin('a', aState(1, 20 * MiB), read);
    ahead.begin('b', aState(1, 20 * MiB), read);
    assert.equal(ahead.take('b', aState(1)), undefined);
    ahead.begin('c', aState(1, 12 * MiB), read);
    await ahead.take('c', aState(1));
    await clock.advance(30_000);
    assert.equal(ahead.take('a', aState(1)), undefined);
    ahead.begin('b', aState(1, 20 * MiB), read);
    assert.ok(ahead.take('b', aState(1)));
  });
});

test('the stored state of a session that wakes is read while its pod is made, and only once', async () => {
  const world = new QuietWorld();
  await world.start();
  const session = await world.session('notes');
  await world.turn(session, 'first', { ms: 10, output: 1, state: 200_000 });
  await world.edit('notes', { suspendRequest: 'a' });
  await world.sessionUntil('notes', ({ status }) => status?.phase === 'Suspended');
  assert.ok(world.server.get(sessions, 'team', 'notes')?.status?.state?.ref);
  world.calls = [];
  await world.turn(session, 'second', { ms: 10, output: 1 });
  const reads = world.calls.filter((call) => call === 'get blobs').length;
  assert.equal(reads, 1, world.calls.join());
  const podSeen = world.calls.indexOf('replace sessions', 1);
  assert.ok(world.calls.indexOf('get blobs') < podSeen, world.calls.join());
});
