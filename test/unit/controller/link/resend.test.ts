import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Resend } from '../../../../controller/link/resend.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

function setUp() {
  const clock = new VirtualClock();
  const asked: [from: number, at: number][] = [];
  const frames = { next: 3 };
  const start = clock.monotonic();
  const resend = new Resend({
    clock,
    next: () => frames.next,
    ask: (from) => asked.push([from, clock.monotonic() - start]),
  });
  return { clock, resend, frames, asked };
}

test('a gap is asked for at once, and again after a second while its frames are missing', async () => {
  const { clock, resend, asked } = setUp();
  resend.missing({ from: 3, to: 4 });
  resend.missing({ from: 3, to: 4 });
  await clock.advance(999);
  assert.deepEqual(asked, [[3, 0]]);
  await clock.advance(1);
  assert.deepEqual(asked, [
    [3, 0],
    [3, 1_000],
  ]);
});

test('a gap whose frames have come is not asked for again', async () => {
  const { clock, resend, frames, asked } = setUp();
  resend.missing({ from: 3, to: 4 });
  resend.missing({ from: 3, to: 4 });
  frames.next = 5;
  await clock.advance(5_000);
  assert.deepEqual(asked, [[3, 0]]);
});

test('the rest of a partly filled gap is asked for', async () => {
  const { clock, resend, frames, asked } = setUp();
  resend.missing({ from: 3, to: 6 });
  resend.missing({ from: 3, to: 6 });
  frames.next = 5;
  await clock.advance(1_000);
  assert.deepEqual(asked.at(-1), [5, 1_000]);
});

test('a later gap is asked for at once', () => {
  const { resend, asked } = setUp();
  resend.missing({ from: 3, to: 4 });
  resend.missing({ from: 7, to: 7 });
  assert.deepEqual(
    asked.map(([from]) => from),
    [3, 7],
  );
});

test('no frame is asked for after the close', async () => {
  const { clock, resend, asked } = setUp();
  resend.missing({ from: 3, to: 4 });
  resend.missing({ from: 3, to: 4 });
  resend.close();
  await clock.advance(5_000);
  assert.deepEqual(asked, [[3, 0]]);
});
