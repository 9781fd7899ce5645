import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { boundedWait } from '../../../../controller/act/bounded-wait.ts';
import { WorkQueue } from '../../../../controller/runtime/work-queue.ts';
import { silentLogger } from '../../../../core/system.ts';
import { seededRandom } from '../../../support/random.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

const withoutWorker = <R>(work: () => Promise<R>) => work();
const never = () => new Promise<never>(() => {});

describe('a store that is waited for', () => {
  test('has until the deadline, also one that ignores that it is no longer waited for', async () => {
    const clock = new VirtualClock();
    const waits = boundedWait(
      { effects: { clock, withoutWorker }, deadline: clock.now() + 1000, signal: new AbortController().signal },
      never,
    );
    const outcome = waits.catch((error: { code: string }) => error.code);
    await clock.advance(999);
    assert.equal(await Promise.race([outcome, settled().then(() => 'waiting')]), 'waiting');
    await clock.advance(1);
    assert.equal(await outcome, 'StoreSlow');
    assert.equal(clock.pending, 0);
  });
  test('has its time also where the machine sleeps meanwhile', async () => {
    const clock = new VirtualClock();
    const options = {
      effects: { clock, withoutWorker },
      deadline: clock.now() + 1000,
      signal: new AbortController().signal,
    };
    const outcome = boundedWait(options, never).catch((error: { code: string }) => error.code);
    clock.jump(3_600_000);
    await clock.advance(999);
    assert.equal(await Promise.race([outcome, settled().then(() => 'waiting')]), 'waiting');
    await clock.advance(1);
    assert.equal(await outcome, 'StoreSlow');
  });
  test('leaves nothing behind that listens once it has answered', async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    let told: AbortSignal | undefined;
    const answer = await boundedWait(
      { effects: { clock, withoutWorker }, deadline: clock.now() + 1000, signal },
      async (given) => {
        told = given;
        return 'stored';
      },
    );
    assert.deepEqual([answer, told?.aborted, clock.pending], ['stored', true, 0]);
  });
  test('keeps no worker from looking at another session', async () => {
    const clock = new VirtualClock();
    const looked: string[] = [];
    const queue: WorkQueue = new WorkQueue({
      clock,
      random: seededRandom(),
      log: silentLogger,
      name: 'test',
      workers: 1,
      backoff: { baseMs: 50, maxMs: 60_000 },
      process: async (key, signal) => {
        looked.push(key);
        const effects = { clock, withoutWorker: queue.withoutWorker.bind(queue) };
        if (key === 'slow') await boundedWait({ effects, deadline: clock.now() + 1000, signal }, never);
        return undefined;
      },
    });
    queue.start();
    for (const key of ['slow', 'quick']) queue.add(key);
    await clock.advance(500);
    assert.deepEqual(looked, ['slow', 'quick']);
    const stopped = queue.stop(1);
    await clock.advance(1);
    await stopped;
  });
  test('is told, and is no longer waited for once the session is needed', async () => {
    const clock = new VirtualClock();
    let needed = false;
    let told: AbortSignal | undefined;
    const options = {
      effects: { clock, withoutWorker },
      deadline: clock.now() + 60_000,
      signal: new AbortController().signal,
      unless: () => needed,
    };
    const outcome = boundedWait(options, (signal) => {
      told = signal;
      return never();
    }).catch((error: { code: string }) => error.code);
    await clock.advance(1000);
    assert.equal(told?.aborted, false);
    needed = true;
    await clock.advance(250);
    assert.equal(await outcome, 'StoreSlow');
    assert.equal(told?.aborted, true);
  });
  test('gives back what it answers, and fails with what it fails with', async () => {
    const clock = new VirtualClock();
    const options = {
      effects: { clock, withoutWorker },
      deadline: clock.now() + 1000,
      signal: new AbortController().signal,
    };
    assert.equal(await boundedWait(options, async () => 7), 7);
    await assert.rejects(
      boundedWait(options, async () => {
        throw new Error('full');
      }),
      /full/,
    );
    assert.equal(clock.pending, 0);
  });
  test('is let go of when the controller stops', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const outcome = boundedWait(
      { effects: { clock, withoutWorker }, deadline: clock.now() + 1000, signal: stop.signal },
      never,
    ).catch((error: Error) => error.message);
    stop.abort(new Error('stopping'));
    assert.equal(await outcome, 'stopping');
  });
});
