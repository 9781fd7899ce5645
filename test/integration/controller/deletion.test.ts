import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { pods } from '../../../core/kube/resources.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

/** Changes that people, policies and other programs make to the objects of a session. */
describe('a session whose objects others change or delete', () => {
  const cluster = installed(ONE_LEADER);
  beforeAll(() => {
    cluster.startController({ BERTH_MAX_RUNNING: '2', BERTH_GARBAGE_INTERVAL: '1s' });
  });

  const agent = {
    command: ['sh', '-c', 'read file; until [ -e "$file" ]; do sleep 0.02; done; echo done'],
    input: 'Text' as const,
    result: 'Text' as const,
  };
  const ref = (name: string) => ({ namespace: 'default', name });
  const released = (name: string) => join(cluster.home, `${name}-released`);
  /** A session whose turn is at work until it is released. */
  async function working(name: string) {
    await cluster.create(name, { agent });
    await cluster.turn(name, `${name}-1`, released(name));
    await cluster.until(name, 'runs', ({ status }) => status?.currentTurn === `${name}-1`);
    const [pod] = await cluster.podsOf(name);
    assert.ok(pod);
    return pod;
  }
  const noPods = (name: string, uid: string) =>
    eventually(
      async () =>
        (await cluster.client.list(pods, { namespace: 'default' })).items.every((one) => one.metadata.uid !== uid),
      { what: `the pod of ${name} is gone` },
    );

  test('keeps its turn and its pod when labels of the pod are changed, and has those back by which it is found', async () => {
    const { metadata } = await working('labelled');
    const labels = { 'app.kubernetes.io/managed-by': 'policy', 'berth.dev/session-uid': null };
    await cluster.client.patch(pods, ref(metadata.name), { metadata: { labels } });
    // The controller has seen it, and does nothing that ends the turn.
    const isMended = async () =>
      (await cluster.client.get(pods, ref(metadata.name))).metadata.labels?.['berth.dev/session-uid'] !== undefined;
    await eventually(isMended, { what: 'the label by which the pod is found' });
    writeFileSync(released('labelled'), '');
    assert.equal((await cluster.ended('labelled-1')).status?.output, 'done\n');
    const kept = await cluster.client.get(pods, ref(metadata.name));
    assert.equal(kept.metadata.uid, metadata.uid);
    assert.equal(kept.metadata.labels?.['berth.dev/session-uid'], metadata.labels?.['berth.dev/session-uid']);
    await cluster.client.patch(pods, ref(metadata.name), {
      metadata: { labels: { 'app.kubernetes.io/managed-by': null } },
    });
    await cluster.patch('labelled', { suspendRequest: 'x' });
    await cluster.until('labelled', 'is suspended', ({ status }) => status?.phase === 'Suspended');
    await noPods('labelled', metadata.uid);
    await cluster.delete('labelled');
  });

  test('leaves no pod that holds a slot when it is deleted without its dependents', async () => {
    for (const name of ['orphaned-1', 'orphaned-2']) {
      await cluster.create(name, { agent });
      await cluster.until(name, 'is ready', ({ status }) => status?.phase === 'Ready');
    }
    for (const name of ['orphaned-1', 'orphaned-2']) {
      await cluster.client.delete(sessions, ref(name), { propagationPolicy: 'Orphan' });
    }
    await cluster.create('next', { agent });
    await cluster.until('next', 'is ready', ({ status }) => status?.phase === 'Ready');
    await cluster.delete('next');
    await eventually(async () => (await cluster.client.list(pods, { namespace: 'default' })).items.length === 0, {
      what: 'all pods are gone',
    });
  });

  test('has its turn ended and its pod gone while somebody’s finalizer still holds it', async () => {
    const pod = await working('held');
    const wait = await cluster.turn('held', 'held-2', released('held'));
    await cluster.client.patch(sessions, ref('held'), { metadata: { finalizers: ['example.com/keep'] } });
    await cluster.delete('held');
    assert.equal((await cluster.ended('held-1')).status?.phase, 'Cancelled');
    assert.equal((await cluster.ended(wait.metadata.name)).status?.error?.code, 'SessionDeleted');
    await noPods('held', pod.metadata.uid);
    const session = await cluster.until('held', 'has let go of its place', ({ status }) => !status?.podName);
    assert.equal(session.status?.phase, 'Terminating');
    await cluster.client.patch(sessions, ref('held'), { metadata: { finalizers: null } });
  });
});
