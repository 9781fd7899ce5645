import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { GarbageTools } from '../../../controller/garbage/context.ts';
import { sweepSession } from '../../../controller/garbage/sweep-session.ts';
import type { CachedSession } from '../../../controller/world/world.ts';
import { silentLogger } from '../../../core/system.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { aSession, aTurn } from '../../support/world.ts';

test('a turn that ends while a sweep reads the turns is not counted as one that the sweep has seen ended', async () => {
  const session = aSession({ status: { turns: { total: 4, succeeded: 4, failed: 0 } } });
  const items = [1, 2, 3, 4, 5].map((index) => {
    const phase = index < 5 ? ('Succeeded' as const) : ('Running' as const);
    return aTurn({ name: `t-${index}`, status: { index, phase } });
  });
  const api = {
    list: async () => ({ items, metadata: { resourceVersion: '1' } }),
    get: async () => ({ ...session, status: { ...session.status, turns: { total: 5, succeeded: 5, failed: 0 } } }),
  };
  const tools = {
    api,
    caches: { class: () => undefined },
    store: { list: async () => [] },
    log: silentLogger,
    clock: new VirtualClock(),
    ownTime: () => 0,
  };
  const { left } = await sweepSession(
    tools as unknown as GarbageTools,
    session as CachedSession,
    AbortSignal.timeout(9_000),
  );
  assert.deepEqual([left?.turns, left?.counted], [4, 4]);
});
