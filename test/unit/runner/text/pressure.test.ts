import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { together } from '../../../../runner/drivers/drain.ts';
import { Pressure } from '../../../../runner/text/pressure.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const LONG_MS = 5000;

describe('a writer that fills a stream waits for its reader', () => {
  test('from when it takes no more until it has taken everything', () => {
    const pressure = new Pressure(new VirtualClock());
    let calls = 0;
    pressure.hold();
    pressure.whenRoom(() => calls++);
    assert.deepEqual([pressure.full, calls], [true, 0]);
    pressure.release(() => {});
    assert.deepEqual([pressure.full, calls], [false, 1]);
  });

  test('and goes on waiting when what was held back fills the stream again', () => {
    const pressure = new Pressure(new VirtualClock());
    let calls = 0;
    pressure.hold();
    pressure.whenRoom(() => calls++);
    pressure.release(() => pressure.hold());
    assert.deepEqual([pressure.full, calls], [true, 0]);
  });

  test('not longer than five seconds in which it has not caught up', async () => {
    const clock = new VirtualClock();
    const pressure = new Pressure(clock);
    let calls = 0;
    pressure.hold();
    pressure.whenRoom(() => calls++);
    await clock.advance(LONG_MS - 1);
    pressure.release(() => pressure.hold());
    await clock.advance(LONG_MS - 1);
    assert.deepEqual([pressure.full, pressure.stalled, calls], [true, false, 0]);
    await clock.advance(1);
    assert.deepEqual([pressure.full, pressure.stalled, calls], [false, true, 1]);
    pressure.hold();
    assert.equal(pressure.full, false, 'nobody waits for it until it reads again');
    pressure.release(() => {});
    pressure.hold();
    assert.equal(pressure.full, true);
  });

  test('and for the readers of all streams that are filled at once', () => {
    const clock = new VirtualClock();
    const [one, other] = [new Pressure(clock), new Pressure(clock)];
    const flow = together(one, other);
    let calls = 0;
    one.hold();
    other.hold();
    flow.whenRoom(() => calls++);
    one.release(() => {});
    assert.deepEqual([flow.full, calls], [true, 0]);
    other.release(() => {});
    assert.deepEqual([flow.full, calls], [false, 1]);
  });
});
