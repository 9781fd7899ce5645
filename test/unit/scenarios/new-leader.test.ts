import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { leases } from '../../../core/kube/resources.ts';
import { ownedBy, type StoredSession, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { podName } from '../../../core/resources/names.ts';
import type { StateRef } from '../../../core/resources/schema.ts';
import { NO_FAULTS } from '../../sim/api/faults.ts';
import { create } from '../../sim/users/writes.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

/** A controller that waits for the lease which another has, and has seen a session. */
async function heir() {
  let faults = NO_FAULTS;
  const world = new QuietWorld({ rates: () => faults });
  const { admin } = world.server;
  const lease = { namespace: 'berth', name: 'berth-controller' };
  await world.furnish();
  await admin.create(leases, { metadata: lease, spec: { holderIdentity: 'earlier', leaseDurationSeconds: 3600 } });
  world.replica.start();
  await create(world.server, sessions, 'team', 'notes', { class: 'default', suspend: true });
  await world.pass(5_000);
  const notes = await admin.get(sessions, { namespace: 'team', name: 'notes' });
  return {
    world,
    admin,
    notes,
    /** Delays all later writes on their way to the caches. */
    stall: () => {
      faults = { ...NO_FAULTS, watchStalled: 1 };
    },
    release: async () => {
      const held = await admin.get(leases, lease);
      await admin.replace(leases, { ...held, spec: { ...held.spec, holderIdentity: '' } });
    },
  };
}

test('a new leader that was not yet told of a turn that ended gives its index to no other', async () => {
  const { world, admin, notes, stall, release } = await heir();
  stall();
  const status = { phase: 'Suspended', incarnation: 1 } as const;
  const session = await admin.replace(sessions, { ...notes, status }, { subresource: 'status' });
  const owner = { ownerReferences: [ownedBy(session)] };
  const plan = {} as Parameters<typeof world.give>[1];
  await world.give('first', plan, 'notes', owner);
  const first = await admin.get(turns, { namespace: 'team', name: 'first' });
  await admin.replace(turns, { ...first, status: { phase: 'Succeeded', index: 1 } }, { subresource: 'status' });
  await world.give('second', plan, 'notes', owner);
  await release();

  const second = () => world.server.get(turns, 'team', 'second') as StoredTurn;
  await world.until('an index', () => second().status?.index !== undefined);
  assert.equal(second().status?.index, 2);
});

test('a new leader that was not yet told of a session that was deleted makes no pod for it', async () => {
  const { world, admin, notes, stall, release } = await heir();
  const status = { phase: 'Starting', incarnation: 1, podName: podName(notes.metadata.uid, 1) } as const;
  await admin.replace(sessions, { ...notes, status }, { subresource: 'status' });
  await world.pass(1_000);
  stall();
  await admin.delete(sessions, { namespace: 'team', name: 'notes' });
  await release();
  await world.until('leading', () => world.replica.isLeading);
  await world.pass(10_000);
  assert.ok(!world.calls.includes('create pods'), `${world.calls}`);
});

test('a new leader that was not yet told of a turn that ended binds no runner with the state before it', async () => {
  const { world, admin, notes, stall, release } = await heir();
  stall();
  const owner = { ownerReferences: [ownedBy(notes)] };
  await world.give('first', {} as Parameters<typeof world.give>[1], 'notes', owner);
  const first = await admin.get(turns, { namespace: 'team', name: 'first' });
  const state: StateRef = {
    digest: 'd'.repeat(64),
    keyId: 'another',
    bytes: 4,
    incarnation: 1,
    seq: 3,
    inline: 'AAAA',
  };
  const ended = { phase: 'Succeeded', index: 1, incarnation: 1, state } as const;
  await admin.replace(turns, { ...first, status: ended }, { subresource: 'status' });
  const status = { phase: 'Starting', incarnation: 2, podName: podName(notes.metadata.uid, 2) } as const;
  await admin.patch(sessions, notes.metadata as { name: string }, { spec: { suspend: false } }, { type: 'merge' });
  const live = await admin.get(sessions, { namespace: 'team', name: 'notes' });
  await admin.replace(sessions, { ...live, status }, { subresource: 'status' });
  await release();

  const session = () => world.server.get(sessions, 'team', 'notes');
  await world.until('the last state', () => session()?.status?.state?.seq === 3);
  await world.pass(20_000);
  assert.deepEqual(world.bindings, [], 'the key of that state is unknown: a runner bound has another state, or none');
});

/** Milliseconds until the first turn has an index, counted from when the controller leads. */
async function indexedAfter(prepare: (world: QuietWorld) => Promise<void>): Promise<number> {
  const world = new QuietWorld();
  await world.start();
  await world.session('notes');
  await prepare(world);
  await world.until('leading', () => world.replica.isLeading);
  const { clock } = world.server;
  const since = clock.now();
  await world.give('first', { ms: 10, output: 1 }, 'notes');
  await world.until('an index', () => world.server.get(turns, 'team', 'first')?.status?.index !== undefined);
  return clock.now() - since;
}

describe('a leader gives no index while requests of the one before may still take effect', () => {
  const killed = async ({ replica }: QuietWorld) => {
    replica.kill();
    replica.start();
  };
  const lease = { namespace: 'berth', name: 'berth-controller' };
  test('for the longest that one may be under way, where the lease has expired', async () => {
    const ms = await indexedAfter(killed);
    assert.ok(ms >= 4_500 && ms < 8_000, `${ms} ms`);
  });
  test('for as long as a leader need not renew, where nobody knows the lease that was deleted', async () => {
    const ms = await indexedAfter(async (world) => {
      world.replica.kill();
      await world.server.admin.delete(leases, lease);
      world.replica.start();
    });
    assert.ok(ms >= 9_500 && ms < 13_000, `${ms} ms`);
  });
  test('also where another leader was stopped before it had waited for that long', async () => {
    let deletedAt = 0;
    const ms = await indexedAfter(async (world) => {
      const { replica, server } = world;
      replica.kill();
      await server.admin.delete(leases, lease);
      deletedAt = server.clock.now();
      replica.start();
      const version = () => server.get(leases, lease.namespace, lease.name)?.metadata.resourceVersion;
      await world.until('another lease', () => version() !== undefined);
      const created = version();
      await world.until('its confirmation', () => version() !== created);
      assert.equal(replica.isLeading, false);
      replica.stop();
      await world.until('the end', () => !replica.process?.alive);
      replica.start();
      await world.until('leading', () => replica.isLeading);
      deletedAt -= server.clock.now();
    });
    assert.ok(ms - deletedAt >= 9_500, `${ms - deletedAt} ms`);
  });
  test('and at once where it was given free, or there was none', async () => {
    const stopped = await indexedAfter(async (world) => {
      world.replica.stop();
      await world.until('the end', () => !world.replica.process?.alive);
      world.replica.start();
    });
    const first = await indexedAfter(async () => {});
    assert.ok(stopped < 1_000 && first < 1_000, `${stopped} and ${first} ms`);
  });
});

test('a commit is logged with who made it, from which state, and its index', async () => {
  const world = new QuietWorld();
  await world.start();
  const session = await world.session('notes');
  for (const name of ['first', 'second']) await world.turn(session, name, { ms: 10, output: 1, state: 50 });
  await world.pass(1_000);
  const [first, second, ...others] = world.logged.filter(({ message }) => message === 'turn committed');
  assert.deepEqual(others, []);
  const turn = world.server.get(turns, 'team', 'second') as StoredTurn;
  const lease = world.server.get(leases, 'berth', 'berth-controller');
  const { fields = {} } = second ?? {};
  assert.deepEqual(
    [fields.session, fields.uid, fields.turn, fields.index, fields.incarnation, fields.phase, fields.version],
    ['team/notes', session.metadata.uid, 'second', 2, 1, 'Succeeded', turn.metadata.resourceVersion],
  );
  assert.deepEqual([fields.holder, fields.epoch], [lease?.spec?.holderIdentity, lease?.spec?.leaseTransitions]);
  assert.match(String(fields.boot), /^[\w-]{8,}/);
  assert.equal(first?.fields.base, null);
  assert.deepEqual(fields.base, first?.fields.state);
  assert.equal((fields.state as StateRef).seq, turn.status?.state?.seq);
});

test('a new leader attaches at once to a session that gets a turn, however many sessions at rest do not answer', async () => {
  const world = new QuietWorld();
  const { replica, server } = world;
  await world.start();
  const ready: StoredSession[] = [];
  for (let i = 0; i < 8; i++) ready.push(await world.session(`rests-${i}`));
  const last = ready.pop() as StoredSession;
  const others = ready.filter((session) => world.nodeOf(session) === world.nodeOf(last));
  assert.ok(others.length >= 2, `${others.length} beside it`);
  for (const session of others) world.freeze(session, 60_000);
  replica.kill();
  replica.start();
  await world.until('leading', () => replica.isLeading);
  await world.pass(6_000);
  const since = server.clock.now();
  await world.turn(last, 'first', { ms: 10, output: 1 });
  const ms = server.clock.now() - since;
  assert.ok(ms < 1_000, `${ms} ms`);
});
