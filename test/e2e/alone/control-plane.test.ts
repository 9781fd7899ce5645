import assert from 'node:assert/strict';
import { setTimeout as after } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { tools } from '../../support/tools.ts';
import { apply, ended, finish, get, kubectl, makeNamespace, said, session, turn, until } from '../support/cluster.ts';
import { pythonAgent, pythonImage } from '../support/images.ts';
import { allEnded, assertOnce, giveTurns } from '../support/load.ts';
import { cordon, nodeNames, processes, signal } from '../support/node.ts';

const PAUSE_MS = 20_000;
const serving = () =>
  eventually(() => kubectl(['get', '--raw', '/readyz']), { timeoutMs: 240_000, what: 'API server' });
/** Asks once: the other helpers ask again for longer than the pause. */
async function isServing(): Promise<boolean> {
  const { code } = await finish((await tools()).kubectl, ['get', '--raw', '/readyz', '--request-timeout=2s']);
  return code === 0;
}
const agent = { image: pythonImage, agent: { command: pythonAgent } };

/** Cordons a node until the end of the test and takes the sessions' pods from it; those of other tests stay. */
async function drain(t: TestContext, node: string, sessions: readonly string[]): Promise<void> {
  await cordon(t, node);
  const options = ['--ignore-daemonsets', '--delete-emptydir-data', '--timeout=300s'];
  await kubectl(['drain', node, ...options, '--pod-selector', `berth.dev/session in (${sessions.join(',')})`]);
}

/** The first of many: by the time one looks it may have ended. */
const hasBegun = ({ status }: { status?: { phase?: string } }) => status?.phase && status.phase !== 'Queued';

describe('a cluster in trouble', () => {
  test('the API server is killed while turns run, and every turn runs exactly once', async (t) => {
    const namespace = await makeNamespace(t);
    await giveTurns(namespace, 4, 5, 1);
    await until(namespace, 'turn', 'load-1-1', hasBegun);
    await signal('KILL', await processes('kube-apiserver --'));
    await serving();
    assertOnce(await allEnded(namespace, 20, 240_000));
  });

  test('etcd stands still for 20 s while turns run, and every turn runs exactly once', async (t) => {
    const namespace = await makeNamespace(t);
    await giveTurns(namespace, 4, 5, 1);
    await until(namespace, 'turn', 'load-1-1', hasBegun);
    const etcd = await processes('^etcd --');
    await signal('STOP', etcd);
    const begun = performance.now();
    try {
      await eventually(async () => !(await isServing()), { timeoutMs: PAUSE_MS, what: 'the API server misses etcd' });
      await after(PAUSE_MS - (performance.now() - begun));
    } finally {
      await signal('CONT', etcd);
    }
    await serving();
    assertOnce(await allEnded(namespace, 20, 240_000));
  });

  test('a drained node’s sessions go on elsewhere with their state', async (t) => {
    const namespace = await makeNamespace(t);
    const names = ['one', 'two', 'three', 'four'].map((name) => `${namespace}-${name}`);
    const podsOn = async (node: string) =>
      (await get(['pods', '-n', namespace, '--field-selector', `spec.nodeName=${node}`])).items;
    await apply(...names.map((name) => session(namespace, name, agent)));
    await apply(...names.map((name) => turn(namespace, `${name}-1`, name, { note: 'before' })));
    for (const name of names) assert.equal((await ended(namespace, `${name}-1`)).status.phase, 'Succeeded');
    const nodes = await nodeNames();
    assert.equal(nodes.length, 2);
    const [busy, other] = (await podsOn(nodes[0]!)).length > 0 ? nodes : nodes.toReversed();
    await cordon(t, busy!);
    await eventually(async () => (await podsOn(busy!)).length === 0, {
      timeoutMs: 180_000,
      what: 'idle sessions have left the cordoned node',
    });
    await drain(t, busy!, names);
    await apply(...names.map((name) => turn(namespace, `${name}-2`, name, { note: 'after' })));
    for (const name of names) {
      const { status } = await ended(namespace, `${name}-2`);
      assert.equal(status.phase, 'Succeeded', JSON.stringify(status.error));
      assert.deepEqual(status.output.notes, ['before', 'after']);
    }
    const { items } = await get(['pods', '-n', namespace]);
    assert.equal(items.length, names.length);
    for (const { spec } of items) assert.equal(spec.nodeName, other);
  });

  test('a turn whose node is drained under it ends as Evicted with its state kept, and the session goes on', async (t) => {
    const namespace = await makeNamespace(t);
    const name = `${namespace}-py`;
    await apply(session(namespace, name, agent), turn(namespace, 'py-1', name, { note: 'kept' }));
    assert.equal((await ended(namespace, 'py-1')).status.phase, 'Succeeded');
    await apply(turn(namespace, 'py-2', name, { note: 'drained', sleep: 600 }));
    const [pod] = (await get(['pods', '-n', namespace])).items;
    await said(namespace, pod.metadata.name, 'noted drained');
    await drain(t, pod.spec.nodeName, [name]);
    const { status } = await ended(namespace, 'py-2');
    assert.equal(status.phase, 'Failed');
    assert.equal(status.error.code, 'Evicted', status.error.message);
    await apply(turn(namespace, 'py-3', name, { note: 'next' }));
    const next = await ended(namespace, 'py-3');
    assert.deepEqual(next.status.output.notes, ['kept', 'drained', 'next']);
  });
});
