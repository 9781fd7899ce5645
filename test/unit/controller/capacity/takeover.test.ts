import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError } from '../../../../core/kube/errors.ts';
import { ownedBy, sessionclasses, sessions } from '../../../../core/resources/kinds.ts';
import { firstTurnName } from '../../../../core/resources/names.ts';
import { QuietWorld } from '../../../support/quiet-world.ts';

const KIND = { apiVersion: 'berth.dev/v1alpha1' };
/** Maximum time for which a session that cannot be written keeps the others waiting. */
const PATIENCE_MS = 30_000;

/** The leader is killed and its lease expires: virtual milliseconds until its successor has admitted a new session. */
async function admitsAfter(maxRunning: number, prepare: (world: QuietWorld) => Promise<void>): Promise<number> {
  const world = new QuietWorld({ maxRunning });
  await world.start();
  await prepare(world);
  await world.pass(2_000);
  world.replica.kill();
  world.replica.start();
  await world.until('leading', () => world.replica.isLeading);
  const { clock } = world.server;
  const since = clock.now();
  await world.session('other');
  return clock.now() - since;
}

/** Creates a session of the maximum size that the API server takes without a status. */
async function huge(world: QuietWorld, spec: object): Promise<void> {
  const env = Array.from({ length: 47 }, (_, i) => ({ name: `A${i}`, value: 'x'.repeat(32_768) }));
  for (let size = 31_400; ; size -= 16) {
    const agent = { env: [...env, { name: 'MORE', value: 'x'.repeat(size) }] };
    const session = { metadata: { namespace: 'team', name: 'huge' }, spec: { ...spec, agent } };
    try {
      await world.server.admin.create(sessions, { ...KIND, kind: 'Session', ...session } as never);
      return;
    } catch (error) {
      if (!/too large/.test((error as Error).message)) throw error;
    }
  }
}

async function waitsForever(world: QuietWorld): Promise<void> {
  const open = { metadata: { name: 'open' }, spec: { agent: { command: ['agent'] }, overrides: ['agent.env'] } };
  await world.server.admin.create(sessionclasses, { ...KIND, kind: 'SessionClass', ...open } as never);
  await huge(world, { class: 'open' });
}

describe('after the take-over of an expired lease, others are admitted in spite of a session', () => {
  test('whose first turn has its name taken', async () => {
    const ms = await admitsAfter(2, async (world) => {
      const other = await world.session('earlier');
      await world.turn(other, firstTurnName('run'), { ms: 10, output: 1 });
      const spec = { class: 'default', turns: 'One', input: { ms: 10, output: 2 } };
      const run = { metadata: { namespace: 'team', name: 'run' }, spec };
      await world.server.admin.create(sessions, { ...KIND, kind: 'Session', ...run } as never);
    });
    assert.ok(ms < PATIENCE_MS, `${ms} ms`);
  });
  test('that is too large to be written and asks for no slot', async () => {
    const ms = await admitsAfter(1, (world) => huge(world, { class: 'default', suspend: true }));
    assert.ok(ms < PATIENCE_MS, `${ms} ms`);
  });
  test('that is too large to be written and waits for a slot', async () => {
    const ms = await admitsAfter(2, waitsForever);
    assert.ok(ms < PATIENCE_MS, `${ms} ms`);
  });
});

test('a slot that the earlier leader may have assigned stays reserved for as long', async () => {
  const ms = await admitsAfter(1, waitsForever);
  assert.ok(ms > PATIENCE_MS && ms < 2 * PATIENCE_MS, `${ms} ms`);
});

test('a session whose turns cannot be listed does not hold up those behind it in the queue', async () => {
  const world = new QuietWorld({ maxRunning: 1 });
  await world.start();
  const first = await world.session('first');
  // A turn without an end: its session is not preempted.
  await world.give('long', { output: 1 }, 'first', { ownerReferences: [ownedBy(first)] });
  await world.pass(2_000);
  await world.session('stuck', {}, 'Queued');
  await world.pass(1_500);
  await world.session('behind', {}, 'Queued');
  await world.pass(15_000);
  world.replica.kill();
  const stuck = await world.server.admin.get(sessions, { namespace: 'team', name: 'stuck' });
  await world.give('turn', { ms: 100, output: 1 }, 'stuck', { ownerReferences: [ownedBy(stuck)] });
  world.refuse = ({ verb, fieldSelector }) =>
    verb === 'list' && fieldSelector === 'spec.session=stuck'
      ? new ApiError({ code: 504, reason: 'Timeout', message: 'too slow' })
      : undefined;
  world.replica.start();
  await world.pass(2 * PATIENCE_MS);
  await world.server.admin.delete(sessions, { namespace: 'team', name: first.metadata.name });
  await world.sessionUntil('behind', ({ status }) => status?.phase === 'Ready');
});
