import { expect, test } from 'vitest';
import { NO_STATE, type PackedState, type StateDirectory } from '../../../../runner/state/archive.ts';
import { Packing } from '../../../../runner/state/packing.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A state whose packings end when the test says so. */
function held() {
  const ends: ((error?: Error) => void)[] = [];
  const pack = () =>
    new Promise<PackedState>((resolve, reject) => {
      ends.push((error) => (error ? reject(error) : resolve(NO_STATE)));
    });
  const state: StateDirectory = { pack, unpack: async () => {} };
  return { state, ends };
}

test('a step waits for the packing that is under way, also for one that fails, and for the next that has begun', async () => {
  const { state, ends } = held();
  const packing = new Packing();
  const clock = new VirtualClock();
  const packed = packing.of(state);
  const steps: string[] = [];
  const first = packed.pack();
  first.catch(() => {});
  const taken = packing.outside(() => steps.push('step'), clock, 1000);
  const second = packed.pack();
  ends[0]?.(new Error('it grew'));
  await first.catch(() => {});
  await new Promise(setImmediate);
  expect(steps).toEqual([]);
  ends[1]?.();
  await second;
  expect(await taken).toBe(true);
  expect(steps).toEqual(['step']);
});

test('a step is not taken where the packing takes longer than the time for it', async () => {
  const { state } = held();
  const packing = new Packing();
  const clock = new VirtualClock();
  void packing.of(state).pack();
  const steps: string[] = [];
  const taken = packing.outside(() => steps.push('step'), clock, 1000);
  await clock.advance(1000);
  expect(await taken).toBe(false);
  expect(steps).toEqual([]);
});
