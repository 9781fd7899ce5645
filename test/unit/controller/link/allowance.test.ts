import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Allowance, Allowances, type Work } from '../../../../controller/link/allowance.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const NONE = { noise: 0, frames: 0 };
const MS = 1000;

/** Milliseconds of work that pods have done in a time if each takes as much as it may. */
async function greedy(clock: VirtualClock, pods: readonly Allowance[], work: Partial<Work>, ms: number) {
  const until = pods.map(() => 0);
  let done = 0;
  for (const end = clock.monotonic() + ms; clock.monotonic() < end; await clock.advance(10)) {
    for (const [index, pod] of pods.entries()) {
      if ((until[index] as number) > clock.monotonic()) continue;
      done += ((work.noise ?? 0) + (work.frames ?? 0)) / MS;
      until[index] = clock.monotonic() + pod.spend({ ...NONE, ...work });
    }
  }
  return done;
}

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

  test('for frames is whole again once they have ended a turn', () => {
    const pod = new Allowances(new VirtualClock()).open();
    pod.spend({ noise: 250 * MS, frames: 1_500 * MS });
    pod.restore();
    assert.equal(pod.spend({ noise: 0, frames: 1_500 * MS }), 0);
    assert.ok(pod.spend({ noise: MS, frames: 0 }) > 0, 'that for noise is not');
    assert.equal(new Allowances(new VirtualClock()).open().spend(NONE), 0);
  });
});

describe('the allowances of many pods', () => {
  for (const kind of ['noise', 'frames'] as const) {
    test(`are one burst of ${kind} beyond a little of each, and a tenth of a CPU for long`, async () => {
      const clock = new VirtualClock();
      const allowances = new Allowances(clock);
      const pods = Array.from({ length: 50 }, () => allowances.open());
      const atOnce = await greedy(clock, pods, { [kind]: MS }, 10);
      const most = kind === 'noise' ? 250 + 50 * 10 : 1_500 + 50 * 100;
      assert.ok(atOnce <= most + 50, `${atOnce} ms at once`);
      const later = await greedy(clock, pods, { [kind]: 4 * MS }, 120_000);
      assert.ok(later <= 0.11 * 120_000 + 50 * 4 + most, `${later} ms in two minutes`);
      const muchLater = await greedy(clock, pods, { [kind]: 4 * MS }, 120_000);
      assert.ok(muchLater <= 0.11 * 120_000, `${muchLater} ms in two more`);
    });
  }

  test('that print just what one may for long are a tenth of a CPU, too', async () => {
    const clock = new VirtualClock();
    const allowances = new Allowances(clock);
    const pods = Array.from({ length: 50 }, () => allowances.open());
    // A fiftieth of a CPU each.
    await greedy(clock, pods, { frames: 0.2 * MS }, 60_000);
    const work = await greedy(clock, pods, { frames: 0.2 * MS }, 60_000);
    assert.ok(work <= 0.11 * 60_000, `${work} ms in a minute`);
  });

  test('leave another its own: for 13 MB of frames, and for what its last turn brought', async () => {
    const clock = new VirtualClock();
    const allowances = new Allowances(clock);
    const used = allowances.open();
    used.spend({ noise: 0, frames: 600 * MS });
    used.restore();
    const pods = Array.from({ length: 50 }, () => allowances.open());
    await greedy(clock, pods, { frames: 4 * MS, noise: MS }, 60_000);
    const fresh = allowances.open();
    assert.equal(fresh.spend({ noise: 5 * MS, frames: 100 * MS }), 0);
    assert.equal(used.spend({ noise: 5 * MS, frames: 700 * MS }), 0);
    assert.ok(fresh.spend({ noise: 0, frames: 100 * MS }) > 0, 'more has to wait');
  });

  test('come back when pods that used them are gone, no faster than from one that rests', async () => {
    const clock = new VirtualClock();
    const allowances = new Allowances(clock);
    const burst = { noise: 0, frames: 1_500 * MS };
    const first = allowances.open();
    assert.equal(first.spend(burst), 0);
    first.close();
    assert.ok(allowances.open().spend(burst) > 0);
    await clock.advance(80_000);
    assert.equal(allowances.open().spend(burst), 0);
  });
});
