import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { WorkQueue, type WorkQueueOptions } from '../../../../controller/runtime/work-queue.ts';
import { silentLogger } from '../../../../core/system.ts';
import { seededRandom } from '../../../support/random.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

const DAY_MS = 24 * 3600 * 1000;

function queueOf(process: WorkQueueOptions['process'], options: Partial<WorkQueueOptions> = {}) {
  const clock = new VirtualClock();
  const backoff = { baseMs: 50, maxMs: 60_000 };
  const common = { clock, random: seededRandom(), log: silentLogger, name: 'test', workers: 2, backoff };
  const queue = new WorkQueue({ ...common, process, ...options });
  return { clock, queue };
}

/** A process that stands until told to go on. */
function gate() {
  const seen: string[] = [];
  const open = new Map<string, () => void>();
  const process = (key: string) =>
    new Promise<undefined>((resolve) => {
      seen.push(key);
      open.set(key, () => resolve(undefined));
    });
  const finish = async (key: string) => {
    open.get(key)?.();
    await settled();
  };
  return { seen, process, finish };
}

describe('a queue without progress', () => {
  test('reports how long keys have waited while none was started', async () => {
    const { seen, process, finish } = gate();
    const { clock, queue } = queueOf(process);
    queue.start();
    for (const key of ['a', 'b']) queue.add(key);
    await clock.advance(60_000);
    assert.equal(queue.stalledMs, 0, 'nothing waits');
    queue.add('c');
    await clock.advance(50_000);
    queue.add('d');
    await clock.advance(10_000);
    assert.equal(queue.stalledMs, 60_000);
    await finish('a');
    assert.deepEqual(seen, ['a', 'b', 'c']);
    await clock.advance(1_000);
    assert.equal(queue.stalledMs, 1_000);
    await finish('b');
    await clock.advance(1_000);
    assert.equal(queue.stalledMs, 0);
  });
});

describe('work queue', () => {
  test('a key added many times before its turn is processed once', async () => {
    const seen: string[] = [];
    const { queue } = queueOf(async (key) => void seen.push(key));
    for (const key of ['a', 'b', 'a', 'a', 'b']) queue.add(key);
    assert.equal(queue.waiting, 2);
    queue.start();
    await settled();
    assert.deepEqual(seen, ['a', 'b']);
  });

  test('a key that its own process adds again each time keeps no timer from firing', async () => {
    let runs = 0;
    const { clock, queue } = queueOf(async (key) => {
      // A limit lets a mistake fail the test instead of hanging it.
      if (++runs < 100_000) queue.add(key);
      return undefined;
    });
    let fired = 0;
    clock.setTimer(1, () => {
      fired = runs;
    });
    queue.start();
    queue.add('a');
    await clock.advance(1);
    assert.ok(fired > 0 && fired < 1000, `the timer fired after ${fired} runs`);
    await clock.advance(10);
    assert.ok(runs > fired, 'and the key goes on');
    await queue.stop();
  });

  test('many keys whose processes await nothing let timers fire between them', async () => {
    let runs = 0;
    const { clock, queue } = queueOf(async () => void runs++);
    const seen: number[] = [];
    const look = () => {
      seen.push(runs);
      if (runs < 1000) clock.setTimer(0, look);
    };
    for (let i = 0; i < 1000; i++) queue.add(`key-${i}`);
    clock.setTimer(0, look);
    queue.start();
    await clock.advance(10);
    assert.equal(runs, 1000);
    const most = Math.max(...seen.map((at, i) => at - (seen[i - 1] ?? 0)));
    assert.ok(most <= 50, `${most} keys without a break`);
  });

  test('a key added last has its turn after the others, or after seven of them, and is never processed for it twice', async () => {
    const { seen, process, finish } = gate();
    const { queue } = queueOf(process, { workers: 1 });
    const finishAll = async () => {
      for (let i = 0; i < seen.length; i++) await finish(seen[i] as string);
    };
    for (const key of ['x', 'y', 'z']) queue.addLast(key);
    for (let i = 1; i <= 9; i++) queue.add(`${i}`);
    queue.add('y');
    queue.addLast('1');
    queue.addLast('x');
    assert.equal(queue.waiting, 12);
    queue.start();
    await finishAll();
    assert.deepEqual(seen, ['1', '2', '3', '4', '5', '6', '7', 'x', '8', '9', 'y', 'z']);
    assert.equal(queue.waiting, 0);
  });

  test('a key added while it is processed is processed once more afterwards and never at the same time', async () => {
    const { seen, process, finish } = gate();
    const { queue } = queueOf(process);
    queue.start();
    queue.add('a');
    queue.add('a');
    queue.add('a');
    assert.deepEqual(seen, ['a']);
    await finish('a');
    assert.deepEqual(seen, ['a', 'a']);
    await finish('a');
    assert.deepEqual([seen.length, queue.running, queue.waiting], [2, 0, 0]);
  });

  test('as many keys are processed at once as there are workers', async () => {
    const { seen, process, finish } = gate();
    const { queue } = queueOf(process, { workers: 2 });
    queue.start();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    assert.deepEqual(seen, ['a', 'b']);
    await finish('b');
    assert.deepEqual(seen, ['a', 'b', 'c']);
  });

  test('any number of keys that wait aside leave all workers to the others', async () => {
    const { seen, process, finish } = gate();
    const slow = Promise.withResolvers<void>();
    const { clock, queue } = queueOf(async (key) => {
      if (key.startsWith('slow')) await queue.withoutWorker(() => slow.promise);
      return process(key);
    });
    queue.start();
    for (const key of ['slow-1', 'slow-2', 'slow-3', 'a', 'b', 'c']) queue.add(key);
    await clock.advance(0);
    assert.deepEqual([seen, queue.running], [['a', 'b'], 5]);
    slow.resolve();
    await settled();
    await finish('a');
    assert.deepEqual(seen.slice(0, 2), ['a', 'b']);
    assert.ok(!seen.includes('c'), 'who comes back counts again');
    for (const key of ['slow-1', 'slow-2', 'slow-3', 'b']) await finish(key);
    assert.ok(seen.includes('c'));
  });

  test('the earliest of several planned runs of a key counts, in whatever order they were planned', async () => {
    const seen: number[] = [];
    const { clock, queue } = queueOf(async () => void seen.push(clock.monotonic()));
    queue.start();
    for (const ms of [500, 300, 900]) queue.addAfter('a', ms);
    assert.equal(queue.delayed, 1);
    await clock.advance(10_000);
    assert.deepEqual(seen, [300]);
  });

  test('a run planned for later than a timer can hold comes at its time and not at once', async () => {
    const seen: number[] = [];
    const { clock, queue } = queueOf(async () => void seen.push(clock.monotonic()));
    queue.start();
    queue.addAfter('a', 30 * DAY_MS);
    assert.ok((clock.nextIn ?? Infinity) < 2 ** 31);
    await clock.advance(40 * DAY_MS);
    assert.deepEqual(seen, [30 * DAY_MS]);
  });

  test('process resolves with the delay of the next run', async () => {
    const seen: number[] = [];
    const { clock, queue } = queueOf(async () => (seen.push(clock.monotonic()) < 3 ? 1_000 : undefined));
    queue.start();
    queue.add('a');
    await clock.advance(60_000);
    assert.deepEqual(seen, [0, 1_000, 2_000]);
  });

  test('a failing key is tried again with doubling, jittered, bounded delay, until it succeeds and starts anew', async () => {
    const seen: number[] = [];
    let failing = true;
    const { clock, queue } = queueOf(
      async () => {
        seen.push(clock.monotonic());
        if (failing) throw new Error('not yet');
        return undefined;
      },
      { backoff: { baseMs: 100, maxMs: 1_000 } },
    );
    queue.start();
    queue.add('a');
    await clock.advance(4_000);
    const waits = seen.slice(1).map((at, i) => at - seen[i]!);
    for (const [i, wait] of waits.entries()) {
      const whole = Math.min(1_000, 100 * 2 ** i);
      assert.ok(wait >= whole / 2 && wait <= whole, `wait ${i} was ${wait}`);
    }
    assert.ok(
      waits.some((wait, i) => wait !== Math.min(1_000, 100 * 2 ** i)),
      'no jitter',
    );
    failing = false;
    await clock.advance(1_000);
    failing = true;
    seen.length = 0;
    queue.add('a');
    await clock.advance(100);
    assert.ok(seen.length >= 2 && seen[1]! - seen[0]! <= 100);
  });

  test('forget drops the failures and the planned runs of a key', async () => {
    const { clock, queue } = queueOf(async () => undefined);
    queue.start();
    queue.retry('a');
    queue.retry('a');
    queue.forget('a');
    assert.deepEqual([queue.delayed, clock.pending], [0, 0]);
    queue.retry('a');
    assert.ok((clock.nextIn ?? Infinity) <= 50);
  });

  test('a stop starts nothing more, drops planned runs and waits for running keys', async () => {
    const { seen, process, finish } = gate();
    const { clock, queue } = queueOf(process, { workers: 1 });
    queue.start();
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 100);
    let stopped = false;
    const stop = queue.stop().then((isFinished) => {
      stopped = true;
      return isFinished;
    });
    queue.add('a');
    await clock.advance(1_000);
    assert.equal(stopped, false);
    await finish('a');
    assert.equal(await stop, true);
    queue.add('d');
    await clock.advance(1_000);
    assert.deepEqual(seen, ['a']);
    assert.deepEqual([queue.running, queue.waiting, queue.delayed], [0, 0, 0]);
  });

  test('a stop that has waited its grace aborts what still runs', async () => {
    const { clock, queue } = queueOf(
      (_key, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    queue.start();
    queue.add('a');
    const stop = queue.stop(5_000);
    await clock.advance(4_999);
    assert.equal(queue.running, 1);
    await clock.advance(1);
    assert.equal(await stop, false);
    assert.equal(queue.running, 0);
  });

  test('no key is processed twice at a time and none is lost, in any order of adds and ends', async () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ op: fc.constant('add' as const), key: fc.constantFrom('a', 'b', 'c') }),
        fc.record({ op: fc.constant('last' as const), key: fc.constantFrom('a', 'b', 'c') }),
        fc.record({ op: fc.constant('after' as const), key: fc.constantFrom('a', 'b', 'c'), ms: fc.nat(50) }),
        fc.record({ op: fc.constant('advance' as const), ms: fc.nat(60) }),
      ),
      { maxLength: 30 },
    );
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), fc.nat(), async (todo, workers, seed) => {
        const random = seededRandom(seed);
        const running = new Set<string>();
        const owed = new Map<string, number>();
        const { clock, queue } = queueOf(
          async (key) => {
            assert.ok(!running.has(key), 'twice at once');
            running.add(key);
            assert.ok(running.size <= workers, 'too many at once');
            const owes = owed.get(key) ?? 0;
            await new Promise<void>((resolve) => clock.setTimer(random.uniform() * 20, resolve));
            running.delete(key);
            if (random.uniform() < 0.2) throw new Error('again');
            if ((owed.get(key) ?? 0) === owes) owed.delete(key);
            return undefined;
          },
          { workers },
        );
        queue.start();
        let order = 0;
        for (const step of todo) {
          if (step.op === 'advance') await clock.advance(step.ms);
          else {
            owed.set(step.key, ++order);
            if (step.op === 'add') queue.add(step.key);
            else if (step.op === 'last') queue.addLast(step.key);
            else queue.addAfter(step.key, step.ms);
          }
        }
        await clock.advance(600_000);
        assert.deepEqual([...owed.keys()], []);
      }),
      { numRuns: 60 },
    );
  });
});
