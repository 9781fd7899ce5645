import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { movedByClockJumps } from '../../../controller/observed/clock-jumps.ts';
import { ServerClock } from '../../../core/kube/server-clock.ts';
import { silentLogger } from '../../../core/system.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const HOUR = 3_600_000;
const header = (ms: number) => new Date(Math.floor(ms / 1000) * 1000).toUTCString();

/** A server whose clock is `ahead` of ours, and answers that take some time each way. */
async function watched(ahead: number, exchanges: { pause: number; there: number; back: number }[]) {
  const own = new VirtualClock(Date.UTC(2030, 0, 1, 0, 0, 0, 123));
  const base = own.now() + ahead;
  const clock = new ServerClock(own, silentLogger);
  const server = () => base + own.monotonic();
  for (const { pause, there, back } of exchanges) {
    await own.advance(pause);
    const sentAt = own.monotonic();
    await own.advance(there);
    const date = header(server());
    await own.advance(back);
    clock.answered({ date, sentAt, receivedAt: own.monotonic() });
  }
  return { own, clock, server };
}

describe("the API server's clock", () => {
  test('is our own before the first answer', () => {
    const own = new VirtualClock();
    assert.equal(new ServerClock(own, silentLogger).now(), own.now());
  });

  test('is never off by more than a second and the time that an answer took, however far apart the clocks are', async () => {
    const ms = (max: number) => fc.integer({ min: 0, max });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -100 * HOUR, max: 100 * HOUR }),
        fc.array(fc.record({ pause: ms(5000), there: ms(300), back: ms(300) }), { minLength: 1, maxLength: 20 }),
        async (ahead, exchanges) => {
          const { clock, server } = await watched(ahead, exchanges);
          const slack = 1000 + Math.min(...exchanges.map(({ there, back }) => there + back)) + 1;
          assert.ok(Math.abs(clock.now() - server()) <= slack, `${clock.now() - server()}`);
        },
      ),
      { numRuns: 100 },
    );
  });

  test('does not notice that our own is set', async () => {
    const { own, clock } = await watched(0, [{ pause: 10, there: 1, back: 1 }]);
    const before = clock.now();
    own.jump(HOUR);
    assert.equal(clock.now(), before);
    await own.advance(5000);
    assert.equal(clock.now(), before + 5000);
  });

  test('follows the server when that one is set, and says so', async () => {
    const { own, clock } = await watched(0, [{ pause: 10, there: 1, back: 1 }]);
    const warned: object[] = [];
    const loud = new ServerClock(own, { ...silentLogger, warn: (facts) => warned.push(facts) });
    const sentAt = own.monotonic();
    const answer = { date: header(clock.now() + HOUR), sentAt, receivedAt: sentAt };
    loud.answered(answer);
    assert.ok(Math.abs(loud.now() - own.now() - HOUR) <= 1000);
    assert.equal(warned.length, 1);
  });

  test('shows its jumps forward: what was waited for since a time before them waited less', async () => {
    const { own, clock } = await watched(HOUR, [{ pause: 10, there: 1, back: 1 }]);
    assert.equal(clock.clockJumps.length, 0, 'its first answer is none');
    await own.advance(60_000);
    const before = clock.now();
    own.jump(3 * HOUR);
    const answered = (ms: number) => {
      const at = own.monotonic();
      clock.answered({ date: header(ms), sentAt: at, receivedAt: at });
    };
    answered(before + 3 * HOUR);
    const [jump] = clock.clockJumps;
    assert.ok(jump && Math.abs(jump.ms - 3 * HOUR) <= 1000, JSON.stringify(clock.clockJumps));
    const since = (ms: number) => clock.now() - movedByClockJumps(ms, clock.clockJumps);
    assert.ok(Math.abs(since(before - 1000) - 1000) <= 1000);
    assert.equal(since(clock.now() - 5), 5, 'a time after it is not moved');
    answered(clock.now() - HOUR);
    await own.advance(60_000);
    answered(clock.now() + HOUR);
    assert.equal(clock.clockJumps.length, 1, 'one back is none, and neither is one forward that makes up for it');
    answered(clock.now() + HOUR);
    assert.equal(clock.clockJumps.length, 2);
  });

  test('never goes back by a correction, and goes on once the server has caught up', async () => {
    const { own, clock } = await watched(900, [{ pause: 10, there: 1, back: 1 }]);
    const before = clock.now();
    const server = Math.floor(before / 1000) * 1000 - 1500;
    const at = own.monotonic();
    clock.answered({ date: header(server), sentAt: at, receivedAt: at });
    assert.equal(clock.now(), before);
    await own.advance(3000);
    const now = clock.now();
    assert.ok(now > before && now < before + 3000, `${now - before}`);
  });

  test('is not moved by an answer without a date', async () => {
    const { own, clock } = await watched(HOUR, [{ pause: 10, there: 1, back: 1 }]);
    const before = clock.now();
    clock.answered({ date: '', sentAt: own.monotonic(), receivedAt: own.monotonic() });
    clock.answered({ date: undefined, sentAt: own.monotonic(), receivedAt: own.monotonic() });
    assert.equal(clock.now(), before);
  });

  test('is not sure while our own has parted from monotonic time, until a request that was sent since is answered', async () => {
    const { own, clock } = await watched(0, [{ pause: 10, there: 1, back: 1 }]);
    const sentBefore = own.monotonic();
    assert.equal(clock.isSure(), true);
    await own.advance(1);
    own.jump(HOUR);
    assert.deepEqual([clock.isSure(), clock.jumps], [false, 1]);
    await own.advance(5);
    const answered = (sentAt: number) =>
      clock.answered({ date: header(own.now()), sentAt, receivedAt: own.monotonic() });
    answered(sentBefore);
    assert.equal(clock.isSure(), false);
    answered(own.monotonic());
    assert.equal(clock.isSure(), true);
  });

  test('at its latest is where our own says that the machine slept, and no earlier where that was set back', async () => {
    const { own, clock } = await watched(0, [{ pause: 10, there: 1, back: 1 }]);
    const before = clock.now();
    own.jump(HOUR);
    assert.deepEqual([clock.now(), clock.latest()], [before, before + HOUR]);
    own.jump(-3 * HOUR);
    assert.equal(clock.latest(), before);
  });

  test('is not set back by an answer that was on its way while the machine slept', async () => {
    const { own, clock } = await watched(0, [{ pause: 10, there: 1, back: 1 }]);
    const late = { date: header(own.now()), sentAt: own.monotonic() };
    await own.advance(1);
    own.jump(HOUR);
    await own.advance(1000);
    clock.answered({ date: header(own.now()), sentAt: own.monotonic(), receivedAt: own.monotonic() });
    clock.answered({ ...late, receivedAt: own.monotonic() });
    assert.ok(Math.abs(clock.now() - own.now()) <= 1000, `${clock.now() - own.now()}`);
  });
});
