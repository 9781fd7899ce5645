import assert from 'node:assert/strict';
import { test } from 'vitest';
import { endOf } from '../../../runner/drivers/families.ts';
import type { Contained } from '../../../runner/process/contained.ts';
import type { Exit } from '../../../runner/process/exit.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const EXIT: Exit = { code: null, signal: 'SIGKILL' };

/** Reports whether the end of a process is told while others of its family still exist. */
async function toldBefore(killing: boolean): Promise<boolean> {
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const family = { exited: Promise.resolve(EXIT), gone, killing } as unknown as Contained;
  let told = false;
  const end = endOf(family, new AbortController().signal, new VirtualClock()).then(() => {
    told = true;
  });
  await new Promise((next) => setImmediate(next));
  const before = told;
  resolve();
  await end;
  return before;
}

test('the end of a process is told at once, but where its family is being killed, when nobody of that is left', async () => {
  assert.deepEqual([await toldBefore(false), await toldBefore(true)], [true, false]);
});
