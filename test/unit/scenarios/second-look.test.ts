import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { ReconcileContext } from '../../../controller/act/context.ts';
import { verifySuspension } from '../../../controller/act/suspension.ts';
import type { CachedSession } from '../../../controller/observed/world.ts';
import { sessions, turns } from '../../../core/resources/kinds.ts';
import { silentLogger, systemClock } from '../../../core/system.ts';
import { QuietWorld } from '../../support/quiet-world.ts';
import { aLink, aMemory, aSession, aWorld, POD_UID, RUNNING_STATUS } from '../../support/world.ts';

test('a turn that is no turn of the session is not taken for its activity', async () => {
  const world = new QuietWorld();
  await world.start();
  await world.session('idle', { timeouts: { idle: '60s' } });
  await world.pass(30_000);
  // A turn restored from a backup: it had an index in a session that is gone.
  await world.give('restored', { ms: 100, output: 1 }, 'idle');
  const ref = { namespace: 'team', name: 'restored' };
  await world.server.admin.patch(turns, ref, { status: { index: 3, phase: 'Queued' } }, { subresource: 'status' });
  await world.pass(20_000);
  assert.equal(world.server.get(turns, 'team', 'restored')?.status?.error?.code, 'SessionReplaced');
  world.calls = [];
  await world.sessionUntil('idle', ({ status }) => status?.phase === 'Suspended');
  assert.equal(world.calls.filter((call) => call === 'list turns').length, 1, 'it was looked at once');
});

const wishes: {
  reason: 'Held' | 'Requested' | 'Restart';
  decided: Partial<CachedSession['spec']>;
  live: Partial<CachedSession['spec']>;
  goes: boolean;
}[] = [
  { reason: 'Held', decided: { suspend: true }, live: { suspend: true }, goes: true },
  { reason: 'Held', decided: { suspend: true }, live: { suspend: false }, goes: false },
  { reason: 'Requested', decided: { suspendRequest: 'a' }, live: { suspendRequest: 'a' }, goes: true },
  { reason: 'Requested', decided: { suspendRequest: 'a' }, live: {}, goes: false },
  { reason: 'Requested', decided: { suspendRequest: 'a' }, live: { suspendRequest: 'b' }, goes: false },
  { reason: 'Restart', decided: { restartRequest: 'a' }, live: { restartRequest: 'a' }, goes: true },
  { reason: 'Restart', decided: { restartRequest: 'a' }, live: { restartRequest: 'b' }, goes: false },
  { reason: 'Restart', decided: { restartRequest: 'a' }, live: {}, goes: false },
];
for (const { reason, decided, live, goes } of wishes) {
  const now = JSON.stringify(live);
  test(`a session that was to be suspended as ${reason} ${goes ? 'gives up' : 'keeps'} its pod where it says ${now} now`, async () => {
    const told: string[] = [];
    const asked = { podUID: POD_UID, askedAt: systemClock.now() };
    const memory = aMemory({ suspension: asked });
    const context = {
      key: 'team/notes',
      memory,
      signal: new AbortController().signal,
      world: aWorld({ session: aSession({ spec: decided, status: RUNNING_STATUS }), link: aLink({ suspended: true }) }),
      effects: {
        api: {
          get: async (resource: unknown) => {
            assert.equal(resource, sessions);
            return aSession({ spec: live, status: RUNNING_STATUS });
          },
          list: async () => ({ metadata: {}, items: [] }),
        },
        // No event tells the controller: it finds out by its own read alone.
        caches: { saw: () => {}, isLeftOut: () => false },
        clock: systemClock,
        log: silentLogger,
        links: { get: () => ({ resume: () => told.push('resume') }) },
      },
    } as unknown as ReconcileContext;
    await verifySuspension(context, reason);
    assert.deepEqual(context.memory.incarnation.suspension, goes ? { ...asked, verified: 'Unchanged' } : undefined);
    assert.deepEqual(told, goes ? [] : ['resume']);
  });
}
