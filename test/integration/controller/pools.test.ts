import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { StoredPod } from '../../../core/kube/builtin.ts';
import { networkPolicies, pods } from '../../../core/kube/resources.ts';
import {
  type SessionPool,
  type StoredSessionPool,
  type StoredTurn,
  sessionclasses,
  sessionpools,
  sessions,
} from '../../../core/resources/kinds.ts';
import { LABEL_POOL, LABEL_SESSION_UID } from '../../../core/resources/names.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER, pythonAgent } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/** Counts its turns in its state. */
const COUNTER = pythonAgent(`
path = os.path.join(state, 'count')
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(count))
answer(count)
`);
const overrides = ['agent.command', 'resources'] as const;

describe('a SessionPool', () => {
  const cluster = installed({ BERTH_MAX_RUNNING: '4', ...ONE_LEADER }, { controller: true });

  const ref = (name: string) => ({ namespace: 'default', name });
  async function makePool(name: string, spec: Partial<SessionPool['spec']>): Promise<void> {
    const object = { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', metadata: ref(name), spec };
    await cluster.client.create(sessionpools, object as SessionPool);
  }
  const makeClass = (name: string) => cluster.createClass(name, { overrides: [...overrides] });
  const removePool = (name: string) => cluster.client.delete(sessionpools, ref(name));
  const poolUntil = (name: string, what: string, check: (pool: StoredSessionPool) => unknown) =>
    eventually(
      async () => {
        const pool = await cluster.client.get(sessionpools, ref(name));
        return check(pool) ? pool : undefined;
      },
      { what: `pool ${name} ${what}` },
    );
  const readyOf = ({ status }: StoredSessionPool) => status?.conditions?.find(({ type }) => type === 'Ready');
  const full = (name: string) => poolUntil(name, 'is full', (pool) => readyOf(pool)?.reason === 'PoolFull');
  async function podsOf(pool: string) {
    const labelSelector = `${LABEL_POOL}=${pool},${LABEL_SESSION_UID}=`;
    return (await cluster.client.list(pods, { namespace: 'default', labelSelector })).items;
  }
  const podsGone = (pool: string) =>
    eventually(async () => (await podsOf(pool)).length === 0, { what: `pods of pool ${pool} are gone` });

  /** Has `run` end a turn until it ran in the pod that the pool had: a busy machine can be too slow for the answer to a claim. */
  async function inPoolPod(name: string, run: (attempt: number) => Promise<StoredTurn>): Promise<StoredPod> {
    for (let attempt = 1; ; attempt++) {
      await full(name);
      // The pool's status may still tell of the pod that was just claimed.
      const pod = await eventually(async () => (await podsOf(name))[0], { what: `pool ${name} has a pod` });
      const { status } = await run(attempt);
      if (status?.podUID === pod.metadata.uid) return pod;
      assert.ok(attempt < 5, JSON.stringify(status));
    }
  }

  test('gives a session a pod that runs already, is filled again, and a suspended session wakes onto it', async () => {
    await makeClass('warm');
    await makePool('warm', { class: 'warm', replicas: 1 });
    let name = '';
    const count = async (expected: number) => {
      await cluster.turn(name, `${name}-${expected}`, 'a');
      const turn = await cluster.ended(`${name}-${expected}`);
      assert.deepEqual([turn.status?.phase, turn.status?.output], ['Succeeded', expected], JSON.stringify(turn.status));
      return turn;
    };
    const first = await inPoolPod('warm', async (attempt) => {
      name = `notes-${attempt}`;
      await cluster.create(name, { class: 'warm', agent: COUNTER });
      return await count(1);
    });
    const [claimed] = await cluster.podsOf(name);
    assert.equal(claimed?.metadata.name, first.metadata.name);
    const { message } = (await cluster.event(name, 'PodClaimed')) as { message: string };
    assert.match(message, new RegExp(`^Claimed pod ${first.metadata.name} of pool "warm": incarnation \\d`));
    assert.deepEqual(
      claimed?.metadata.ownerReferences?.map(({ kind, name }) => [kind, name]),
      [['Session', name]],
    );
    await inPoolPod('warm', async (attempt) => {
      await cluster.patch(name, { suspend: true });
      await cluster.until(name, 'suspended', (session) => session.status?.phase === 'Suspended');
      await cluster.patch(name, { suspend: false });
      return await count(1 + attempt);
    });
    for (const { metadata } of (await cluster.client.list(sessions, { namespace: 'default' })).items)
      await cluster.delete(metadata.name);
    await removePool('warm');
    await podsGone('warm');
  });

  test('with too few pods starts the other sessions cold, and counts the misses', async () => {
    await makeClass('burst');
    await makePool('burst', { class: 'burst', replicas: 1 });
    await full('burst');
    const names = ['burst-a', 'burst-b', 'burst-c'];
    for (const name of names) {
      await cluster.create(name, { class: 'burst', agent: COUNTER });
      await cluster.turn(name, `${name}-1`, 'a');
    }
    for (const name of names) assert.equal((await cluster.ended(`${name}-1`)).status?.phase, 'Succeeded');
    // A session whose pod did not answer in time has started twice.
    const { items } = await cluster.client.list(sessions, { namespace: 'default' });
    const burst = items.filter(({ spec }) => spec.class === 'burst');
    const starts = burst.reduce((sum, { status }) => sum + (status?.incarnation ?? 0), 0);
    const { status } = await poolUntil(
      'burst',
      'counts',
      ({ status }) => (status?.claimed ?? 0) + (status?.missed ?? 0) === starts,
    );
    assert.ok((status?.claimed ?? 0) >= 1, JSON.stringify(status));
    for (const name of names) await cluster.delete(name);
    await removePool('burst');
    await podsGone('burst');
  });

  test('gives its slots to sessions that wait', async () => {
    for (const name of ['kept', 'other']) await makeClass(name);
    await makePool('kept', { class: 'kept', replicas: 4 });
    await full('kept');
    await cluster.create('urgent', { class: 'other', agent: COUNTER });
    await cluster.turn('urgent', 'urgent-1', 'a');
    assert.equal((await cluster.ended('urgent-1')).status?.phase, 'Succeeded');
    const gives = /^Pool(TooLarge|AtCapacity|GivesWay)$/;
    await poolUntil('kept', 'has three pods and says why', (pool) => {
      return pool.status?.ready === 3 && gives.test(readyOf(pool)?.reason ?? '');
    });
    await cluster.delete('urgent');
    await full('kept');
    await removePool('kept');
    await podsGone('kept');
  });

  test('of another version of its class is replaced, and never has fewer ready pods than before', async () => {
    await makeClass('edited');
    await makePool('edited', { class: 'edited', replicas: 1 });
    await full('edited');
    const [before] = await podsOf('edited');
    await cluster.client.patch(
      sessionclasses,
      { name: 'edited' },
      { spec: { resources: { requests: { memory: '96Mi' } } } },
    );
    const after = await eventually(
      async () => {
        const found = await podsOf('edited');
        assert.ok(found.length > 0, 'the last pod went before its replacement was there');
        const [only] = found;
        return found.length === 1 && only?.metadata.uid !== before?.metadata.uid ? only : undefined;
      },
      { what: 'the pod is replaced' },
    );
    assert.equal(after.spec.containers[0]?.resources?.requests?.memory, '96Mi');
    await removePool('edited');
    await podsGone('edited');
  });

  test('replaces a pod whose processes have died, and a session never fails for it', async () => {
    await makeClass('died');
    await makePool('died', { class: 'died', replicas: 1 });
    await full('died');
    const [dead] = await podsOf('died');
    assert.ok(dead);
    await cluster.kill(dead);
    await cluster.create('after', { class: 'died', agent: COUNTER });
    await cluster.turn('after', 'after-1', 'a');
    const { status } = await cluster.ended('after-1');
    assert.deepEqual([status?.phase, status?.attempt], ['Succeeded', 1]);
    assert.notEqual(status?.podUID, dead.metadata.uid);
    await full('died');
    await cluster.delete('after');
    await removePool('died');
    await podsGone('died');
  });

  test('scaled to 0 keeps no pods', async () => {
    await makeClass('scaled');
    await makePool('scaled', { class: 'scaled', replicas: 2 });
    await full('scaled');
    await cluster.client.patch(sessionpools, ref('scaled'), { spec: { replicas: 0 } });
    await podsGone('scaled');
    const { status } = await poolUntil('scaled', 'has none', ({ status }) => status?.replicas === 0);
    assert.equal(status?.conditions?.find(({ type }) => type === 'Ready')?.reason, 'PoolFull');
    await removePool('scaled');
  });

  test('that can have no pods says why and what to do', async () => {
    await assert.rejects(
      makePool('negative', { class: 'default', replicas: -1 }),
      /spec\.replicas.*greater than or equal/,
    );
    await makePool('unknown', { class: 'nothing', replicas: 1 });
    const unknown = readyOf(await poolUntil('unknown', 'says why', readyOf));
    assert.deepEqual([unknown?.status, unknown?.reason], ['False', 'ClassNotFound']);
    assert.match(unknown?.message ?? '', /there is no SessionClass "nothing"; create it/);
    await cluster.createClass('volume', { persistence: { workspace: { type: 'Volume', size: '1Gi' } } });
    await makePool('volume', { class: 'volume', replicas: 1 });
    // The pool may be seen before its class is: it says ClassNotFound until then.
    const volume = readyOf(await poolUntil('volume', 'says why', (pool) => readyOf(pool)?.reason === 'InvalidSpec'));
    assert.match(volume?.message ?? '', /^spec\.class: .*volume of its own.*name another class/);
    await makeClass('small');
    await makePool('large', { class: 'small', replicas: 9 });
    const large = readyOf(await poolUntil('large', 'says why', (pool) => readyOf(pool)?.reason === 'PoolTooLarge'));
    assert.match(large?.message ?? '', /spec\.replicas is 9.*at most 4 running slots.*lower spec\.replicas/);
    for (const name of ['unknown', 'volume', 'large']) await removePool(name);
    await podsGone('large');
  });

  test('has pods behind the NetworkPolicy of their class, which is there before them', async () => {
    await makeClass('walled');
    await makePool('walled', { class: 'walled', replicas: 1 });
    await full('walled');
    const [pod] = await podsOf('walled');
    const policies = await cluster.client.list(networkPolicies, { namespace: 'default' });
    const own = policies.items.find(
      ({ spec }) =>
        spec.podSelector?.matchLabels?.['berth.dev/network'] === pod?.metadata.labels?.['berth.dev/network'],
    );
    assert.ok(own, JSON.stringify(policies.items));
    assert.ok(Number(own.metadata.resourceVersion) < Number(pod?.metadata.resourceVersion));
    await removePool('walled');
    await podsGone('walled');
  });
});
