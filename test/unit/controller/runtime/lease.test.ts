import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { LeaderElector, type LeaderElectorOptions, type Leadership } from '../../../../controller/runtime/lease.ts';
import type { Lease } from '../../../../core/kube/builtin.ts';
import { ApiError, TransportError } from '../../../../core/kube/errors.ts';
import type { CallOptions, KubeApi, Stored, WatchEvent, WatchOptions } from '../../../../core/kube/types.ts';
import { type Clock, delay } from '../../../../core/runtime.ts';
import { silentLogger, systemClock } from '../../../../core/system.ts';
import { eventually } from '../../../support/eventually.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { serverAndClient } from '../../kube/support.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/ns/leases';
const REF = { namespace: 'ns', name: 'controller' };
const refused = (code: number, reason: string) => new ApiError({ code, reason, message: reason });

/** A lease on a virtual clock, behind a network that can be slow, cut, or lose answers. */
class LeaseStore {
  lease: Stored<Lease> | undefined;
  #deleted: Stored<Lease> | undefined;
  readonly #clock: Clock;
  readonly #watchers = new Set<() => void>();
  #version = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The API as one elector reaches it. `before` and `after` are milliseconds, or 'lost'. */
  reached(net: () => { before: number | 'lost'; after: number | 'lost' } = () => ({ before: 0, after: 0 })): KubeApi {
    const through = async <R>(call: CallOptions | undefined, fn: () => R): Promise<R> => {
      const end = this.#clock.monotonic() + (call?.deadlineMs ?? 15_000);
      const lost = async () => {
        await delay(this.#clock, Math.max(0, end - this.#clock.monotonic()));
        throw new TransportError('no answer');
      };
      const { before, after } = net();
      if (before === 'lost') return lost();
      const arrives = this.#clock.monotonic() + before;
      if (before > 0) await delay(this.#clock, Math.min(before, end - this.#clock.monotonic()));
      // The server does not know that the caller has given up meanwhile.
      if (arrives > end) {
        this.#clock.setTimer(arrives - end, () => attempt(fn));
        throw new TransportError('no answer');
      }
      const result = attempt(fn);
      if (after === 'lost' || this.#clock.monotonic() + after > end) return lost();
      if (after > 0) await delay(this.#clock, after);
      if ('error' in result) throw result.error;
      return result.value;
    };
    const api = {
      get: (_resource: unknown, _ref: unknown, call: CallOptions) => through(call, () => this.#get()),
      create: (_resource: unknown, object: Lease, call: CallOptions) =>
        through(call, () => {
          if (this.lease !== undefined) throw refused(409, 'AlreadyExists');
          return this.#put(object);
        }),
      replace: (_resource: unknown, object: Lease, call: CallOptions) =>
        through(call, () => {
          const { resourceVersion } = this.#get().metadata;
          if (object.metadata.resourceVersion !== resourceVersion) throw refused(409, 'Conflict');
          return this.#put(object);
        }),
      watch: (_resource: unknown, options: WatchOptions) => {
        const { before } = net();
        if (before === 'lost') throw new TransportError('cannot be watched');
        return this.#watch(options);
      },
    };
    return api as unknown as KubeApi;
  }

  /** Deletes the lease as `kubectl delete` does. */
  delete(): void {
    this.#deleted = this.lease;
    this.lease = undefined;
    for (const changed of [...this.#watchers]) changed();
  }

  #get(): Stored<Lease> {
    if (this.lease === undefined) throw refused(404, 'NotFound');
    return structuredClone(this.lease);
  }

  #put(object: Lease): Stored<Lease> {
    const metadata = { uid: 'u', creationTimestamp: '', ...object.metadata, resourceVersion: String(++this.#version) };
    this.lease = structuredClone({ ...object, metadata });
    for (const changed of [...this.#watchers]) changed();
    return this.#get();
  }

  async *#watch({ resourceVersion, signal }: WatchOptions): AsyncGenerator<WatchEvent<Lease>> {
    let last = Number(resourceVersion);
    for (;;) {
      signal.throwIfAborted();
      if (this.lease && Number(this.lease.metadata.resourceVersion) > last) {
        last = Number(this.lease.metadata.resourceVersion);
        yield { type: 'MODIFIED', object: this.#get() };
        continue;
      }
      if (!this.lease && this.#deleted) yield { type: 'DELETED', object: this.#deleted };
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.add(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      this.#watchers.delete(resolve);
    }
  }
}

function attempt<R>(fn: () => R): { value: R } | { error: unknown } {
  try {
    return { value: fn() };
  } catch (error) {
    return { error };
  }
}

function elector(api: KubeApi, clock: Clock, holder: string, options: Partial<LeaderElectorOptions> = {}, seed = 1) {
  const started: Leadership[] = [];
  const stopped: string[] = [];
  const it = new LeaderElector({
    api,
    clock,
    random: seededRandom(seed + holder.charCodeAt(0)),
    log: silentLogger,
    ...REF,
    holder,
    ...{ leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 },
    onStartedLeading: (leadership) => started.push(leadership),
    onStoppedLeading: (reason) => stopped.push(reason),
    ...options,
  });
  return { it, started, stopped };
}

/** Two electors on one lease; `net` is the network of the first. */
function two(net?: Parameters<LeaseStore['reached']>[0]) {
  const clock = new VirtualClock();
  const store = new LeaseStore(clock);
  return { clock, store, a: elector(store.reached(net), clock, 'a'), b: elector(store.reached(), clock, 'b') };
}

describe('leader election', () => {
  test('a missing lease is created with the seconds of today as its epoch', async () => {
    const { clock, store, a } = two();
    a.it.start();
    await clock.advance(0);
    assert.equal(a.it.epoch, Math.floor(clock.now() / 1000));
    assert.equal(a.started[0]?.takenOver, false);
    assert.equal(store.lease?.spec?.leaseTransitions, a.it.epoch);
    assert.match(store.lease?.spec?.renewTime ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.equal(store.lease?.spec?.leaseDurationSeconds, 15);
    assert.match(store.lease?.spec?.holderIdentity ?? '', /^a_[0-9a-f]{16}$/);
  });

  test('the second waits while the first renews and takes over, raised and saying so, when it stops doing so', async () => {
    let cut = false;
    const { clock, a, b } = two(() => ({ before: cut ? 'lost' : 0, after: 0 }));
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(120_000);
    assert.deepEqual([a.it.leading, b.it.leading], [true, false]);
    cut = true;
    await clock.advance(12_000);
    assert.deepEqual([a.it.leading, b.it.leading], [false, false]);
    assert.match(a.stopped[0] ?? '', /not renewed within 10000 ms/);
    assert.ok(a.started[0]?.signal.aborted);
    assert.equal(a.it.epoch, undefined);
    await clock.advance(8_000);
    assert.ok(b.it.leading);
    assert.equal(b.started[0]?.takenOver, true);
    assert.equal(b.started[0]?.epoch, a.started[0]!.epoch + 1);
  });

  describe('the lease of an earlier process', () => {
    /** The earlier process is killed `ms` after it began to lead; the next begins a second later. Resolves with both. */
    async function killed({ place = 'pod-1', next = place as string | null, settles = true, ms = 20_000 }) {
      const clock = new VirtualClock();
      const store = new LeaseStore(clock);
      let isDead = false;
      const before = elector(
        store.reached(() => ({ before: isDead ? 'lost' : 0, after: 0 })),
        clock,
        'c',
        { place },
      );
      before.it.start();
      await clock.advance(0);
      if (settles) before.it.settle(before.started[0] as Leadership);
      await clock.advance(ms);
      isDead = true;
      await clock.advance(1_000);
      const after = elector(store.reached(), clock, 'c', { place: next ?? undefined }, 2);
      after.it.start();
      await clock.advance(10);
      return { clock, before, after };
    }

    test('of the same place that had settled is taken at once, with a higher epoch', async () => {
      const { clock, before, after } = await killed({});
      assert.equal(after.it.leading, true);
      const [{ takenOver, succeedsItself, epoch } = {}] = after.started;
      assert.deepEqual([takenOver, succeedsItself, epoch], [true, true, (before.started[0]?.epoch ?? 0) + 1]);
      // The successor of that leader counts what it knows itself, and nothing of its predecessor's.
      await clock.advance(20_000);
      await after.it.release(false);
    });

    for (const [what, change] of [
      ['of the same place that had not settled', { settles: false }],
      ['of the same place that had settled since its last renewal', { ms: 0 }],
      ['of another place', { next: 'pod-2' }],
      ['of a place whose name only begins alike', { place: 'pod-11', next: 'pod-1' }],
      ['of a place, for a process without one', { next: null }],
    ] as const) {
      test(`${what} is taken once it has expired`, async () => {
        const { clock, after } = await killed(change);
        await clock.advance(13_000);
        assert.equal(after.it.leading, false);
        await clock.advance(3_000);
        assert.equal(after.it.leading, true);
        assert.deepEqual([after.started[0]?.takenOver, after.started[0]?.succeedsItself], [true, false]);
      });
    }

    test('that has not settled itself is not taken at once, whoever it has succeeded', async () => {
      const clock = new VirtualClock();
      const store = new LeaseStore(clock);
      const dead = new Set<number>();
      const start = async (n: number) => {
        const net = () => ({ before: dead.has(n) ? ('lost' as const) : 0, after: 0 });
        const one = elector(store.reached(net), clock, 'c', { place: 'pod-1' }, n);
        one.it.start();
        await clock.advance(10);
        return one;
      };
      const first = await start(1);
      first.it.settle(first.started[0] as Leadership);
      await clock.advance(5_000);
      dead.add(1);
      const second = await start(2);
      assert.equal(second.it.leading, true);
      dead.add(2);
      const third = await start(3);
      assert.equal(third.it.leading, false);
    });
  });

  test('a lease that cannot be watched is taken at the next read after its release', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    const a = elector(store.reached(), clock, 'a');
    const { watch: _, ...unwatched } = store.reached();
    const b = elector(unwatched as KubeApi, clock, 'b');
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(5_000);
    await a.it.release();
    await clock.advance(2_200);
    assert.deepEqual([a.it.leading, b.it.leading], [false, true]);
  });

  test('an expired lease is taken when it expires, not at a later read', async () => {
    const { clock, store, a, b } = two();
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(5_000);
    await a.it.release(false);
    const renewed = Date.parse(store.lease?.spec?.renewTime ?? '');
    while (!b.it.leading) await clock.advance(50);
    assert.ok(clock.now() - renewed <= 15_100, `${clock.now() - renewed} ms`);
  });

  test('a lease that is not there may have been deleted under a holder of whom nobody has heard', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    const found = async (api: KubeApi, name: string) => {
      const one = elector(api, clock, name);
      one.it.start();
      await clock.advance(60_000);
      await one.it.release();
      return one.started.map((leadership) => leadership.found);
    };
    assert.deepEqual(await found(store.reached(), 'a'), [false]);
    assert.deepEqual(await found(store.reached(), 'b'), [true]);
    store.delete();
    let answers = 0;
    const lossy = store.reached(() => ({ before: 0, after: answers++ === 1 ? 'lost' : 0 }));
    assert.deepEqual(await found(lossy, 'c'), [false], 'nor when the answer to its creation is lost');
  });

  test('a released lease is taken at once and is not taken over', async () => {
    const { clock, store, a, b } = two();
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(5_000);
    await a.it.release();
    assert.equal(store.lease?.spec?.holderIdentity, '');
    assert.deepEqual(a.stopped, ['released']);
    await clock.advance(0);
    assert.deepEqual([a.it.leading, b.it.leading], [false, true]);
    assert.equal(b.started[0]?.takenOver, false);
    assert.equal(b.started[0]?.epoch, a.started[0]!.epoch + 1);
    await clock.advance(60_000);
    assert.equal(a.started.length, 1);
  });

  test('a leader that is told to stop while it finds its lease taken leaves it to the process that has it', async () => {
    let before = 0;
    const { clock, store, a, b } = two(() => ({ before, after: 0 }));
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(1_000);
    before = 500;
    await clock.advance(1_300);
    // A renewal of a is under way.
    store.delete();
    await clock.advance(0);
    const released = a.it.release();
    await clock.advance(5_000);
    await released;
    assert.match(store.lease?.spec?.holderIdentity ?? '', /^b_/);
    assert.deepEqual([b.it.leading, b.started.length, b.stopped], [true, 1, []]);
  });

  test('a lease that is let go of without being given free expires, and is taken over', async () => {
    const { clock, store, a, b } = two();
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(5_000);
    await a.it.release(false);
    assert.match(store.lease?.spec?.holderIdentity ?? '', /^a_/);
    await clock.advance(10_000);
    assert.deepEqual([a.it.leading, b.it.leading], [false, false]);
    await clock.advance(10_000);
    assert.equal(b.started[0]?.takenOver, true);
  });

  test('times in the record and jumps of the wall clock decide nothing', async () => {
    const { clock, store, a } = two();
    const other = new VirtualClock(0);
    // A clock that runs with the first but believes it is 1970, then 2090.
    const skewed: Clock = {
      now: () => other.now(),
      monotonic: () => clock.monotonic(),
      setTimer: (ms, fn) => clock.setTimer(ms, fn),
    };
    const b = elector(store.reached(), skewed, 'b');
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(60_000);
    clock.jump(3_600_000);
    other.jump(4_000_000_000_000);
    await clock.advance(60_000);
    clock.jump(-9_000_000);
    await clock.advance(60_000);
    assert.deepEqual([a.it.leading, b.it.leading, a.started.length], [true, false, 1]);
  });

  test('the epoch is raised also when the same process acquires again', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    let cut = false;
    const a = elector(
      store.reached(() => ({ before: cut ? 'lost' : 0, after: 0 })),
      clock,
      'a',
    );
    a.it.start();
    await clock.advance(10_000);
    cut = true;
    await clock.advance(12_000);
    cut = false;
    await clock.advance(15_000);
    assert.deepEqual([a.started.length, a.it.leading], [2, true]);
    assert.ok(a.started[1]!.epoch > a.started[0]!.epoch);
    assert.equal(a.started[1]?.takenOver, true, 'its own last requests may be under way');
  });

  test('a take-over whose answer was lost is still a take-over', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    const gone = elector(store.reached(), clock, 'g');
    gone.it.start();
    await clock.advance(0);
    // The holder vanishes without a word: its timers no longer reach the store.
    const record = store.lease?.spec?.leaseTransitions ?? 0;
    let lose = false;
    const api = store.reached(() => ({ before: 0, after: lose ? 'lost' : 0 }));
    const replace = api.replace.bind(api);
    let writes = 0;
    api.replace = ((...args: Parameters<typeof replace>) => {
      lose = writes++ === 0;
      return replace(...args).finally(() => {
        lose = false;
      });
    }) as typeof api.replace;
    const b = elector(api, clock, 'b');
    const held = structuredClone(store.lease);
    await gone.it.release();
    store.lease = held;
    b.it.start();
    await clock.advance(60_000);
    assert.equal(writes > 1, true);
    assert.deepEqual(
      b.started.map(({ takenOver, epoch }) => [takenOver, epoch]),
      [[true, record + 2]],
    );
  });

  test('a renewal whose answer was lost costs no leadership', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    let calls = 0;
    // The ninth call is a renewal.
    const a = elector(
      store.reached(() => ({ before: 0, after: ++calls === 9 ? 'lost' : 0 })),
      clock,
      'a',
    );
    a.it.start();
    await clock.advance(300_000);
    assert.ok(calls > 9 && a.it.leading);
    assert.equal(a.started.length, 1);
  });

  test('a leader below an epoch that somebody has seen re-acquires above it and stays the leader', async () => {
    const { clock, store, a } = two();
    a.it.start();
    await clock.advance(3_000);
    const seen = a.started[0]!.epoch + 50;
    const raised = a.it.reacquireAbove(seen);
    await clock.advance(0);
    assert.equal(await raised, seen + 1);
    assert.equal(a.it.epoch, seen + 1);
    assert.equal(store.lease?.spec?.leaseTransitions, seen + 1);
    await clock.advance(60_000);
    assert.equal(store.lease?.spec?.leaseTransitions, seen + 1);
    assert.deepEqual([a.it.leading, a.started.length], [true, 1]);
    await assert.rejects(a.it.reacquireAbove(2 ** 31 - 1), RangeError);
    await a.it.release();
    await assert.rejects(a.it.reacquireAbove(1), /not the leader/);
  });

  test('a lease at the end of int32 is led to its end, and then told with what to do', async () => {
    const { clock, store, a } = two();
    a.it.start();
    await clock.advance(1_000);
    await a.it.release();
    store.lease = { ...store.lease!, spec: { ...store.lease!.spec, leaseTransitions: 2 ** 31 - 2 } };
    const warned: string[] = [];
    const next = elector(store.reached(), clock, 'next', {
      log: { ...silentLogger, warn: (facts: object) => warned.push((facts as { err: string }).err) },
    });
    next.it.start();
    await clock.advance(30_000);
    assert.deepEqual([next.it.epoch, warned], [2 ** 31 - 1, []]);
    await assert.rejects(next.it.reacquireAbove(2 ** 31 - 2), RangeError);
    assert.ok(next.it.leading);
    await next.it.release();
    const last = elector(store.reached(), clock, 'last', {
      log: { ...silentLogger, warn: (facts: object) => warned.push((facts as { err: string }).err) },
    });
    last.it.start();
    await clock.advance(10_000);
    assert.equal(last.it.leading, false);
    assert.match(warned[0] ?? '', /ns\/controller .*leaseTransitions is at 2147483647.*delete the lease/);
    store.delete();
    await clock.advance(10_000);
    assert.ok(last.it.leading);
    await last.it.release();
  });

  test('the epoch of a new lease grows with the time, and stays below the end of int32 by any clock', async () => {
    const epochs: number[] = [];
    for (const date of ['2026-12-01', '2033-05-01', '2033-06-01', '2038-01-20', '2200-01-01', '9999-12-31']) {
      const clock = new VirtualClock(Date.parse(date));
      const store = new LeaseStore(clock);
      const { it } = elector(store.reached(), clock, 'a');
      it.start();
      await clock.advance(1_000);
      epochs.push(it.epoch ?? Number.NaN);
      await it.release();
    }
    assert.deepEqual(
      epochs,
      epochs.toSorted((x, y) => x - y),
    );
    assert.equal(new Set(epochs).size, epochs.length);
    assert.equal(epochs[0], Date.parse('2026-12-01') / 1000);
    assert.ok((epochs.at(-1) ?? Number.NaN) < 2 ** 31 - 1_000_000);
  });

  test('an epoch that is no number of a lease is refused', async () => {
    const { clock, a } = two();
    a.it.start();
    await clock.advance(1_000);
    const { epoch } = a.it;
    for (const absurd of [2 ** 31 - 1, 2 ** 53, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await assert.rejects(a.it.reacquireAbove(absurd), RangeError, String(absurd));
    }
    assert.equal(a.it.epoch, epoch);
    await a.it.release();
  });

  test('a leader whose lease is deleted or taken stops at its next renewal', async () => {
    const { clock, store, a } = two();
    a.it.start();
    await clock.advance(1_000);
    store.lease = undefined;
    await clock.advance(2_000);
    assert.equal(a.stopped[0], 'the lease was deleted');
    await clock.advance(3_000);
    assert.ok(a.it.leading && a.started[1]!.epoch > a.started[0]!.epoch);
    store.lease = {
      ...store.lease!,
      metadata: { ...store.lease!.metadata, resourceVersion: 'x' },
      spec: { holderIdentity: 'thief' },
    };
    await clock.advance(2_300);
    assert.equal(a.stopped[1], 'the lease is held by thief');
  });

  test('a lease that is deleted under its holder is taken over at once: the holder has yet to notice', async () => {
    const { clock, store, a, b } = two();
    a.it.start();
    await clock.advance(0);
    b.it.start();
    await clock.advance(1_000);
    store.delete();
    await clock.advance(0);
    assert.ok(a.it.leading && b.it.leading, 'for a moment there are two');
    assert.equal(b.started[0]?.takenOver, true);
  });

  test('a leader whose lease was deleted cannot confirm that it leads, and leads no more', async () => {
    const { clock, store, a } = two();
    a.it.start();
    await clock.advance(0);
    await a.it.confirm();
    store.delete();
    assert.ok(a.it.leading, 'it has yet to notice');
    await assert.rejects(a.it.confirm(), /not the leader/);
    assert.equal(a.it.leading, false);
  });

  test('the time left for requests of the leader ends with the leadership', async () => {
    const clock = new VirtualClock();
    const store = new LeaseStore(clock);
    let cut = false;
    const a = elector(
      store.reached(() => ({ before: cut ? 'lost' : 100, after: 100 })),
      clock,
      'a',
    );
    assert.equal(a.it.deadlineLeftMs(), 0);
    a.it.start();
    await clock.advance(400);
    // Counted from when the renewal was sent, not from when its answer came.
    assert.equal(a.it.deadlineLeftMs(), 9_800);
    cut = true;
    await clock.advance(9_799);
    assert.equal(a.it.deadlineLeftMs(), 1);
    await clock.advance(1);
    assert.deepEqual([a.it.deadlineLeftMs(), a.it.leading, a.stopped.length], [0, false, 1]);
  });

  test('callbacks that throw do not end the election', async () => {
    const clock = new VirtualClock();
    const fail = () => {
      throw new Error('callback is broken');
    };
    const a = elector(new LeaseStore(clock).reached(), clock, 'a', { onStartedLeading: fail, onStoppedLeading: fail });
    a.it.start();
    await clock.advance(60_000);
    assert.ok(a.it.leading);
    await a.it.release();
  });

  test('times that cannot work are refused', () => {
    const clock = new VirtualClock();
    const api = new LeaseStore(clock).reached();
    assert.throws(() => elector(api, clock, 'a', { renewDeadlineMs: 15_000 }), RangeError);
  });

  test('over any network there are never two leaders and every epoch is greater than all before', async () => {
    const trouble = fc.record({
      lost: fc.double({ min: 0, max: 0.5, noNaN: true }),
      answerLost: fc.double({ min: 0, max: 0.3, noNaN: true }),
      slowMs: fc.integer({ min: 0, max: 20_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(trouble, { minLength: 2, maxLength: 3 }), fc.nat(), async (networks, seed) => {
        const clock = new VirtualClock();
        const store = new LeaseStore(clock);
        const random = seededRandom(seed);
        const epochs: number[] = [];
        const electors = networks.map(({ lost, answerLost, slowMs }, i) => {
          const net = () => ({
            before: random.uniform() < lost ? ('lost' as const) : random.uniform() ** 3 * slowMs,
            after: random.uniform() < answerLost ? ('lost' as const) : random.uniform() ** 3 * slowMs,
          });
          const options = { onStartedLeading: ({ epoch }: Leadership) => void epochs.push(epoch) };
          return elector(store.reached(net), clock, String.fromCharCode(97 + i), options, seed).it;
        });
        for (const it of electors) it.start();
        for (let at = 0; at < 300_000; at += 500) {
          await clock.advance(500);
          assert.ok(electors.filter(({ leading }) => leading).length <= 1, 'two leaders');
        }
        assert.deepEqual(
          epochs,
          [...new Set(epochs)].sort((a, b) => a - b),
          'an epoch was given twice',
        );
      }),
      { numRuns: 30 },
    );
  });

  test('works against a server over HTTP', async (t) => {
    const { server, client } = await serverAndClient(t);
    const times = { leaseDurationMs: 60_000, renewDeadlineMs: 40_000, retryMs: 20 };
    const a = elector(client, systemClock, 'a', times);
    const b = elector(client, systemClock, 'b', times);
    a.it.start();
    await eventually(() => a.it.leading);
    b.it.start();
    await eventually(() => server.requests.filter(({ method }) => method === 'PUT').length > 3);
    await a.it.release();
    await eventually(() => b.it.leading);
    const lease = server.objects.get(`${LEASE}/controller`) as Stored<Lease>;
    assert.equal(lease.spec?.holderIdentity, b.it.identity);
    assert.equal(lease.spec?.leaseTransitions, a.started[0]!.epoch + 1);
    await b.it.release();
  });
});
