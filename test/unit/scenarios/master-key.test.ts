import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { secrets } from '../../../core/kube/resources.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

const SUSPENDED = 'Suspended';

describe('a rotation of the master key', () => {
  /** A session with a state, and what happens to its Secret and its controller. */
  async function furnished() {
    const world = new QuietWorld();
    await world.start();
    const session = await world.session('notes');
    const { status } = await world.turn(session, 'first', { ms: 100, output: 10, state: 100 });
    assert.equal(status?.phase, 'Succeeded');
    const counted = (name: string) => world.sessionUntil('notes', (seen) => seen.status?.lastTurn?.name === name);
    await counted('first');
    let suspended = 0;
    return {
      world,
      /** Changes the data of the Secret, and has the controller begin with it. */
      async keys(change: (data: Record<string, string>) => Record<string, string>) {
        const secret = world.server.get(secrets, 'berth', 'berth-master-key');
        assert.ok(secret?.data);
        await world.server.admin.replace(secrets, { ...secret, data: change(secret.data) });
        world.replica.stop();
        await world.until('the end of the leader', () => !world.replica.process?.alive);
        world.replica.start();
        await world.until('a leader', () => world.replica.isLeading);
      },
      suspend: async () => {
        await world.edit('notes', { suspendRequest: `${++suspended}` });
        return world.sessionUntil('notes', (seen) => seen.status?.phase === SUSPENDED);
      },
      keyId: () => world.sessionUntil('notes', () => true).then((seen) => seen.status?.state?.keyId),
      async turn(name: string, plan: object) {
        const seen = await world.sessionUntil('notes', () => true);
        const { status } = await world.turn(seen, name, { ms: 100, output: 10, ...plan });
        await counted(name);
        return status?.phase;
      },
    };
  }

  const add = (id: string) => (data: Record<string, string>) => ({
    ...data,
    [id]: Buffer.alloc(32, 7).toString('base64'),
    current: Buffer.from(id).toString('base64'),
  });
  const only = (id: string) => (data: Record<string, string>) => ({
    [id]: data[id] ?? '',
    current: data.current ?? '',
  });

  test('seals a state anew with the next turn of another pod, also if nothing changed, and the old key may go', async () => {
    const { world, keys, suspend, keyId, turn } = await furnished();
    const before = await keyId();
    await suspend();
    await keys(add('new'));
    assert.equal(await turn('second', {}), 'Succeeded');
    assert.notEqual(before, 'new');
    assert.equal(await keyId(), 'new');
    await suspend();
    await keys(only('new'));
    assert.equal(await turn('third', {}), 'Succeeded');
    assert.deepEqual(world.bindings.at(-1)?.restores?.sealedWith, undefined);
  });

  test('leaves a pod that was bound before as it is, and its next suspension keeps the old key', async () => {
    const { keys, suspend, keyId, turn } = await furnished();
    const before = await keyId();
    await keys(add('new'));
    assert.equal(await turn('second', { state: 200 }), 'Succeeded');
    assert.equal(await keyId(), before);
    assert.equal((await suspend()).status?.state?.keyId, before);
    assert.equal(await turn('third', {}), 'Succeeded');
    assert.equal(await keyId(), 'new');
  });

  test('that took the old key too early is told by its name, and putting it back is enough', async () => {
    const { world, keys, suspend, keyId, turn } = await furnished();
    await suspend();
    const before = (await keyId()) ?? '';
    let old = '';
    await keys((data) => {
      old = data[before] ?? '';
      return only('new')(add('new')(data));
    });
    await world.give('second', { ms: 100, output: 10 }, 'notes');
    const told = await world.sessionUntil('notes', ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === 'StateKeyUnknown')),
    );
    const { message = '' } = told.status?.conditions?.find(({ reason }) => reason === 'StateKeyUnknown') ?? {};
    assert.ok(message.includes(`master key "${before}"`), message);
    await keys((data) => ({ ...data, [before]: old }));
    assert.equal(await turn('third', {}), 'Succeeded');
    assert.equal(await keyId(), 'new');
  });
});
