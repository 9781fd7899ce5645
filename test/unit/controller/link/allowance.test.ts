import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Allowances } from '../../../../controller/link/allowance.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const NONE = { noise: 0, frames: 0 };
const MS = 1000;

describe('the allowance of a pod', () => {
  test('is enough for a message of the largest size that comes twice', () => {
    const pod = new Allowances(new VirtualClock()).open();
    assert.equal(pod.spend({ noise: 100 * MS, frames: 1_200 * MS }), 0);
  });

  test('is used up by noise much earlier', () => {
    const pod = new Allowances(new VirtualClock()).open();
    assert.equal(pod.spend({ noise: 250 * MS, frames: 0 }), 0);
    assert.equal(pod.spend({ noise: 10 * MS, frames: 0 }), 500);
  });

  test('is a fiftieth of a CPU for long, in pauses of two seconds at most', async () => {
    const clock = new VirtualClock();
    const pod = new Allowances(clock).open();
    let work = 0;
    while (clock.monotonic() < 600_000) {
      const pauseMs = pod.spend({ noise: 8 * MS, frames: 0 });
      assert.ok(pauseMs <= 2_000);
      work += 8;
      await clock.advance(pauseMs + 1);
    }
    assert.ok(work / clock.monotonic() <= 0.021, `${work} ms in ${clock.monotonic()} ms`);
    await clock.advance(60_000);
    assert.equal(pod.spend({ noise: 200 * MS, frames: 0 }), 0, 'it has rested');
  });

  test('is less beside many others that use up theirs, a quarter of a CPU for all', async () => {
    const clock = new VirtualClock();
    const allowances = new Allowances(clock);
    const pods = Array.from({ length: 50 }, () => ({ allowance: allowances.open(), until: 0 }));
    for (const { allowance } of pods) allowance.spend({ noise: 250 * MS, frames: 0 });
    let work = 0;
    for (; clock.monotonic() < 120_000; await clock.advance(10)) {
      for (const pod of pods) {
        if (pod.until > clock.monotonic()) continue;
        work += 8;
        pod.until = clock.monotonic() + pod.allowance.spend({ noise: 8 * MS, frames: 0 });
      }
    }
    assert.ok(work / clock.monotonic() <= 0.3, `${work} ms in ${clock.monotonic()} ms`);
    const honest = allowances.open();
    assert.equal(honest.spend({ noise: 100 * MS, frames: 1_200 * MS }), 0, 'another has all of its own');
  });

  test('for frames is whole again once they have ended a turn', () => {
    const pod = new Allowances(new VirtualClock()).open();
    pod.spend({ noise: 250 * MS, frames: 1_500 * MS });
    pod.restore();
    assert.equal(pod.spend({ noise: 0, frames: 1_500 * MS }), 0);
    assert.ok(pod.spend({ noise: MS, frames: 0 }) > 0, 'that for noise is not');
    assert.equal(new Allowances(new VirtualClock()).open().spend(NONE), 0);
  });
});
