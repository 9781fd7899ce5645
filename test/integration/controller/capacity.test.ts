import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { pods } from '../../../core/kube/resources.ts';
import { type ControllerProcess, Installation, pythonAgent } from '../../support/installation.ts';

const AGENT = pythonAgent('time.sleep(0.2)\nanswer(request["input"])\n');

/** Follows all pods by a watch of its own and remembers how many there were at most. */
async function watchPods(
  cluster: Installation,
  signal: AbortSignal,
): Promise<{ most: () => number; done: Promise<void> }> {
  const { metadata, items } = await cluster.client.list(pods);
  const present = new Set(items.map((pod) => pod.metadata.uid));
  let most = present.size;
  const follow = async () => {
    try {
      for await (const event of cluster.client.watch(pods, { resourceVersion: metadata.resourceVersion, signal })) {
        if (event.type === 'ADDED') present.add(event.object.metadata.uid);
        if (event.type === 'DELETED') present.delete(event.object.metadata.uid);
        most = Math.max(most, present.size);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  return { most: () => most, done: follow() };
}

describe('a maximum of running sessions', () => {
  let cluster: Installation;
  before(async () => {
    cluster = await Installation.start({ BERTH_MAX_RUNNING: '3', BERTH_LEASE_DURATION: '1s' });
  });
  after(() => cluster.stop());
  let controller: ControllerProcess;
  afterEach(() => controller.kill('SIGKILL'));

  test('is never exceeded, however many creates race, also while the controller is killed', async () => {
    controller = cluster.startController();
    const stop = new AbortController();
    const watch = await watchPods(cluster, stop.signal);
    const names = Array.from({ length: 12 }, (_, index) => `race-${index}`);
    await Promise.all(names.map((name) => cluster.create(name, { agent: AGENT, turns: 'One', input: name })));
    await cluster.ended('race-0', 60_000).catch(() => undefined);
    await controller.kill('SIGKILL');
    controller = cluster.startController();
    for (const name of names) assert.equal((await cluster.ended(name, 60_000)).status?.output, name);
    stop.abort();
    await watch.done;
    assert.equal(watch.most(), 3);
  });

  test('makes a session wait, first come, first served, and says so', async () => {
    await cluster.createClass('narrow', { overrides: ['agent.command'], limits: { maxRunning: 1 } });
    controller = cluster.startController();
    await cluster.create('holder', { class: 'narrow', agent: AGENT });
    await cluster.until('holder', 'ready', ({ status }) => status?.phase === 'Ready', 30_000);
    for (const name of ['second', 'third']) {
      await cluster.create(name, { class: 'narrow', agent: AGENT, turns: 'One', input: name });
      const { status } = await cluster.until(name, 'queued', (session) => session.status?.queue !== undefined);
      assert.equal(status?.phase, 'Queued');
      assert.match(
        status?.conditions?.find(({ type }) => type === 'Admitted')?.message ?? '',
        /class "narrow"|waited longer/,
      );
    }
    await cluster.delete('holder');
    const [second, third] = [await cluster.ended('second'), await cluster.ended('third')];
    assert.ok(String(second.status?.finishedAt) < String(third.status?.finishedAt));
  });
});
