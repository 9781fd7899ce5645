import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { apply, ended, get, makeNamespace, session } from '../support/cluster.ts';
import { pythonAgent, pythonImage } from '../support/images.ts';
import { leader } from '../support/leader.ts';
import { allEnded, assertOnce, giveTurns } from '../support/load.ts';
import { cordon, signal } from '../support/node.ts';
import { claimed, full, makeClass, pool, unclaimed } from '../support/pools.ts';

describe('a SessionPool', () => {
  test('gives no pod to two sessions and loses no turn when the leader is killed while sessions claim its pods', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace, { image: pythonImage, agent: { command: pythonAgent } });
    await apply(pool(namespace, 'warm', { class: name, replicas: 4 }));
    await full(namespace);
    const killed = await leader({ settled: true });
    await giveTurns(namespace, 6, 2, 1, { class: name });
    await eventually(async () => (await claimed(namespace)).length > 0, {
      timeoutMs: 120_000,
      what: 'a session has claimed a pod',
    });
    await signal('KILL', killed.targets);
    const turns = await allEnded(namespace, 12, 300_000);
    assertOnce(turns);
    assert.notEqual((await leader()).identity, killed.identity);
    const sessionsOf = Map.groupBy(turns, ({ status }) => status.podUID);
    for (const [uid, ran] of sessionsOf) {
      assert.equal(new Set(ran.map(({ spec }) => spec.session)).size, 1, `pod ${uid} ran turns of several sessions`);
    }
    await full(namespace);
    const warm: string[] = (await unclaimed(namespace)).map(({ metadata }) => metadata.uid);
    assert.deepEqual(
      warm.filter((uid) => sessionsOf.has(uid)),
      [],
      'a pod that a session had is offered again',
    );
  });

  test('leaves a cordoned node, and sessions claim its pods on the other', async (t) => {
    const namespace = await makeNamespace(t);
    const name = await makeClass(t, namespace);
    await apply(pool(namespace, 'warm', { class: name, replicas: 2 }));
    await full(namespace);
    const node = (await unclaimed(namespace))[0]?.spec.nodeName;
    await cordon(t, node);
    await eventually(
      async () => {
        const found = await unclaimed(namespace);
        return found.length === 2 && found.every(({ spec }) => spec.nodeName && spec.nodeName !== node);
      },
      { timeoutMs: 180_000, what: 'the pool has its pods on the other node' },
    );
    await apply(session(namespace, 'moved', { class: name, turns: 'One', input: 'hello' }));
    const { status } = await ended(namespace, 'moved');
    assert.deepEqual([status.phase, status.output], ['Succeeded', 'hello'], JSON.stringify(status));
    const { items } = await get(['pods', '-n', namespace, '-l', 'berth.dev/session=moved']);
    for (const { spec } of items) assert.notEqual(spec.nodeName, node);
  });
});
