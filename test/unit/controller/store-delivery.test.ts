import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { storeDelivery } from '../../../controller/act/store-delivery.ts';
import { aWorld, runningTurn } from '../../support/world.ts';

test('a log that was lost before its result was read is said to be truncated, and none is made up where nothing was printed', async () => {
  const context = { world: aWorld() } as unknown as ReconcileContext;
  const logOf = async (more: { logSeq?: number }) => {
    const message = { state: 'Unchanged' as const, ...more };
    const turn = runningTurn('a', { status: { incarnation: 1 } });
    return (await storeDelivery(context, turn, { result: { seq: 4, message } })).log;
  };
  assert.deepEqual(await logOf({ logSeq: 3 }), { bytes: 0, truncated: true });
  assert.equal(await logOf({}), undefined);
});
