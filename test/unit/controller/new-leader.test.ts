import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leases } from '../../../core/kube/resources.ts';
import { ownedBy, type StoredTurn, sessions, turns } from '../../../core/resources/kinds.ts';
import { podName } from '../../../core/resources/names.ts';
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
    /** What is written from now on reaches the caches late. */
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
