import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { GarbageTools } from '../../../../controller/garbage/context.ts';
import { sweepSession } from '../../../../controller/garbage/sweep-session.ts';
import type { CachedSession } from '../../../../controller/observed/world.ts';
import { silentLogger } from '../../../../core/system.ts';
import { cachesOf, startGarbage } from '../../../support/garbage.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aSession, aTurn, SESSION_UID } from '../../../support/world.ts';

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
    undefined,
    AbortSignal.timeout(9_000),
  );
  assert.deepEqual([left?.turns, left?.counted], [4, 4]);
});

test('a full queue refuses turns that are counted nowhere, so its session is swept again although it counts no more', async () => {
  const clock = new VirtualClock();
  const session = aSession({ status: { turns: { total: 3, succeeded: 3, failed: 0 } } }) as CachedSession;
  const queued = [1, 2].map((index) => aTurn({ name: `q-${index}`, status: { index: 3 + index, phase: 'Queued' } }));
  const refused = Array.from({ length: 5 }, (_, i) =>
    aTurn({ name: `r-${i}`, status: { phase: 'Failed', finishedAt: new Date(i).toISOString() } }),
  );
  let isFull = false;
  const deleted: string[] = [];
  const api = {
    list: async () => ({ items: [...queued, ...(isFull ? refused : [])], metadata: { resourceVersion: '1' } }),
    get: async () => session,
    delete: async (_resource: unknown, { name }: { name: string }) => void deleted.push(name),
  };
  const ended = new AbortController();
  const garbage = startGarbage(clock, {
    api,
    caches: {
      ...cachesOf(session),
      turnsNaming: () => (isFull ? queued : []),
      class: () => ({ spec: { limits: { maxQueuedTurns: 2 }, history: { turns: 3 }, overrides: [], secrets: [] } }),
    },
    store: {
      list: async () => [{ namespace: 'team', sessionUID: SESSION_UID, incarnation: 1, seq: 1, createdAt: 0 }],
      delete: async () => undefined,
    },
    ended: ended.signal,
  });
  const key = `${session.metadata.namespace}/${session.metadata.name}`;
  await clock.advance(10 * 60_000);
  assert.deepEqual(deleted, []);
  isFull = true;
  garbage.watches.session?.(key);
  await clock.advance(10 * 60_000);
  assert.equal(deleted.length, 2);
  ended.abort();
});

test('a class that is gone while a sweep reads the turns, and is back before the next, loses no removal by it', async () => {
  const clock = new VirtualClock();
  const status = { turns: { total: 3, succeeded: 3, failed: 0 }, lastTurn: { index: 3 } };
  const session = aSession({ status } as never) as CachedSession;
  const items = [1, 2, 3].map((index) => aTurn({ name: `t-${index}`, status: { index, phase: 'Succeeded' } }));
  let isThere = true;
  let leaves = true;
  const deleted: string[] = [];
  const ended = new AbortController();
  const garbage = startGarbage(clock, {
    api: {
      list: async () => {
        if (leaves) isThere = false;
        return { items, metadata: { resourceVersion: '1' } };
      },
      get: async () => session,
      delete: async (_resource: unknown, { name }: { name: string }) => void deleted.push(name),
    },
    caches: {
      ...cachesOf(session),
      class: () => (isThere ? { spec: { history: { turns: 2 }, overrides: [], secrets: [] } } : undefined),
    },
    ended: ended.signal,
  });
  await clock.advance(10 * 60_000);
  assert.deepEqual([isThere, deleted], [false, []]);
  [isThere, leaves] = [true, false];
  garbage.watches.session?.(`${session.metadata.namespace}/${session.metadata.name}`);
  await clock.advance(10 * 60_000);
  assert.deepEqual(deleted, ['t-1']);
  ended.abort();
});
