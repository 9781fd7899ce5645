import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Unconfirmed } from '../../../../controller/capacity/unconfirmed.ts';
import { WRITE_DEADLINE_MS } from '../../../../controller/runtime/leased-api.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function setUp() {
  const [clock, caches] = [new VirtualClock(), new SeenCluster()];
  const unconfirmed = new Unconfirmed(clock, caches);
  const known: string[] = [];
  const awaitKey = (key: string) => unconfirmed.await(key, () => known.push(key));
  return { clock, caches, unconfirmed, known, awaitKey };
}

describe('the outcome of a request', () => {
  test('is known once the request is dead and the caches are fresher than that', async () => {
    const { clock, caches, known, awaitKey } = setUp();
    caches.staleMs = 3_000;
    awaitKey('a/1');
    await clock.advance(WRITE_DEADLINE_MS + 2_000);
    assert.deepEqual(known, []);
    await clock.advance(2_000);
    assert.deepEqual(known, ['a/1']);
  });

  test('is awaited from the last of several requests on', async () => {
    const { clock, known, awaitKey } = setUp();
    awaitKey('a/1');
    await clock.advance(WRITE_DEADLINE_MS - 1);
    awaitKey('a/1');
    await clock.advance(WRITE_DEADLINE_MS - 1);
    assert.deepEqual(known, []);
    await clock.advance(1_001);
    assert.deepEqual(known, ['a/1']);
  });

  test('is awaited no longer where something else shows it, and where the leader ends', async () => {
    const { clock, unconfirmed, known, awaitKey } = setUp();
    awaitKey('a/1');
    awaitKey('a/2');
    assert.equal(unconfirmed.has('a/1'), true);
    assert.equal(unconfirmed.end('a/1'), true);
    assert.deepEqual([unconfirmed.has('a/1'), unconfirmed.end('a/1')], [false, false]);
    unconfirmed.close();
    await clock.advance(10 * WRITE_DEADLINE_MS);
    assert.deepEqual(known, []);
  });
});
