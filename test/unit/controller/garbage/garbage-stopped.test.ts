import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { cachesOf, startGarbage } from '../../../support/garbage.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aSession, aTurn } from '../../../support/world.ts';

/** A sweep that is removing the first of three turns when the controller is told to stop. */
async function removing() {
  const clock = new VirtualClock();
  const session = aSession({
    status: {
      turns: { total: 5, succeeded: 5, failed: 0 },
      lastTurn: { name: 't-5', index: 5, phase: 'Succeeded' },
    },
  }) as CachedSession;
  const items = [1, 2, 3, 4, 5].map((index) => aTurn({ name: `t-${index}`, status: { index, phase: 'Succeeded' } }));
  const deletions: { signal: AbortSignal; answer: () => void }[] = [];
  const closing = new AbortController();
  const garbage = startGarbage(clock, {
    api: {
      list: async () => ({ items, metadata: { resourceVersion: '1' } }),
      get: async () => session,
      delete: (_resource: unknown, _ref: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise<void>((resolve, reject) => {
          deletions.push({ signal, answer: resolve });
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    },
    caches: {
      ...cachesOf(session),
      class: () => ({ spec: { limits: { maxQueuedTurns: 2 }, history: { turns: 2 }, overrides: [], secrets: [] } }),
    },
    closing: closing.signal,
  });
  await clock.advance(10 * 60_000);
  closing.abort(new Error('the controller is stopping'));
  const stopped = garbage.stop(5_000);
  await clock.advance(1_000);
  return { clock, deletions, stopped };
}

test('a removal under way is waited for when the controller is told to stop, and is the last', async () => {
  const { clock, deletions, stopped } = await removing();
  assert.deepEqual(
    deletions.map(({ signal }) => signal.aborted),
    [false],
  );
  deletions[0]?.answer();
  await clock.advance(1);
  assert.equal(await stopped, true);
  assert.equal(deletions.length, 1);
});

test('a removal that does not end in time is cut off, and told as one that may still take effect', async () => {
  const { clock, deletions, stopped } = await removing();
  await clock.advance(5_000);
  assert.equal(await stopped, false);
  assert.equal(deletions[0]?.signal.aborted, true);
});
