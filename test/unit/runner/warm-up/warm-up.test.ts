import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LIMIT_MS, QUIET_MS, WarmUp } from '../../../../runner/warm-up/warm-up.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** A warm-up that ends when it is told to by `settle` or `fail`, and records its signal, of a runner that has had input. */
function warmUp({ hasInput = true } = {}) {
  const clock = new VirtualClock();
  const begun: { signal: AbortSignal; settle: () => void; fail: (error: Error) => void }[] = [];
  const it = new WarmUp(
    clock,
    (signal) => new Promise((settle, fail) => begun.push({ signal, settle: () => settle(), fail })),
  );
  if (hasInput) it.heard();
  return { clock, begun, it };
}

/** Reports whether a promise has resolved by now. */
async function isResolved(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))]);
}

describe('a warm-up', () => {
  test('begins once nothing has come for a while after input, and only once', async () => {
    const { clock, begun, it } = warmUp();
    for (let i = 0; i < 3; i++) {
      await clock.advance(QUIET_MS - 1);
      it.heard();
    }
    assert.equal(begun.length, 0);
    await clock.advance(QUIET_MS);
    assert.equal(begun.length, 1);
    it.heard();
    begun[0]?.settle();
    await clock.advance(10 * QUIET_MS);
    it.heard();
    await clock.advance(10 * QUIET_MS);
    assert.deepEqual([begun.length, begun[0]?.signal.aborted, clock.pending], [1, false, 0]);
  });

  test('never begins before the runner has had input, however late that comes', async () => {
    const { clock, begun, it } = warmUp({ hasInput: false });
    await clock.advance(10 * QUIET_MS);
    assert.deepEqual([begun.length, clock.pending], [0, 0]);
    it.heard();
    await clock.advance(QUIET_MS - 1);
    assert.equal(begun.length, 0, 'the bind may follow');
    await clock.advance(1);
    assert.equal(begun.length, 1);
  });

  test('never begins once the runner is bound', async () => {
    const { clock, begun, it } = warmUp();
    await clock.advance(QUIET_MS - 1);
    await it.end();
    it.heard();
    await clock.advance(10 * QUIET_MS);
    assert.deepEqual([begun.length, clock.pending], [0, 0]);
  });

  test('is aborted by the bind, and over when nothing of it is left', async () => {
    const { clock, begun, it } = warmUp();
    await clock.advance(QUIET_MS);
    const over = it.end();
    assert.equal(begun[0]?.signal.aborted, true);
    assert.equal(await isResolved(over), false);
    begun[0]?.settle();
    assert.equal(await isResolved(over), true);
  });

  test('that fails is over', async () => {
    const { clock, begun, it } = warmUp();
    await clock.advance(QUIET_MS);
    begun[0]?.fail(new Error('no space left'));
    assert.equal(await isResolved(it.end()), true);
  });

  test('that hangs is aborted', async () => {
    const { clock, begun } = warmUp();
    await clock.advance(QUIET_MS + LIMIT_MS - 1);
    assert.equal(begun[0]?.signal.aborted, false);
    await clock.advance(1);
    assert.equal(begun[0]?.signal.aborted, true);
  });
});
