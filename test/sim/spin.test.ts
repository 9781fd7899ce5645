import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { Dice } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { resultOf } from './seeds.ts';
import { Trace } from './trace.ts';

test('a world in which time stands still ends, and names an event that comes again and again', async () => {
  const scheduler: Scheduler = new Scheduler(new Dice(1, 'spin'), new Trace({ time: () => scheduler.now }));
  const again = () => {
    scheduler.after(0, undefined, 'asks again', again);
  };
  again();
  await expect(scheduler.run(() => false, 60_000)).rejects.toThrow(/within a second, among them "asks again"/);
});

test('a seed that runs without end is given up', async () => {
  const worker = new Worker("require('node:worker_threads').parentPort.on('message', () => { for (;;); })", {
    eval: true,
  });
  assert.equal(await resultOf(worker, 1, 500), undefined);
  await worker.terminate();
});
