import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import {
  type Any,
  apply,
  checkout,
  ended,
  get,
  helm,
  kubectl,
  makeNamespace,
  release,
  remove,
  session,
  turn,
  until,
} from '../support/cluster.ts';
import { pythonAgent, pythonImage } from '../support/images.ts';
import { allEnded, countPods } from '../support/load.ts';

const spec = { image: pythonImage, agent: { command: pythonAgent } };

// Each test has a namespace of its own, and none takes a slot that another counts.
describe('slots and idleness', { concurrent: true }, () => {
  test('40 sessions created at once compete for 5 slots, and never more than 5 pods exist', async (t) => {
    const namespace = await makeNamespace(t);
    const name = `race-${namespace}`;
    const [ofDefault] = (await get(['sessionclasses', '--field-selector', 'metadata.name=default'])).items;
    await apply({
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name },
      spec: { ...ofDefault.spec, limits: { maxRunning: 5 } },
    });
    t.onTestFinished(() => remove('sessionclass', name));
    const count = await countPods(t, `berth.dev/class=${name}`);
    const runs = Array.from({ length: 40 }, (_, index) =>
      session(namespace, `race-${index}`, { class: name, turns: 'One', input: 'hello' }),
    );
    await apply(...runs);
    const turns = await allEnded(namespace, 40, 600_000);
    assert.ok(
      turns.every(({ status }) => status.phase === 'Succeeded'),
      JSON.stringify(turns.map((x) => x.status.error)),
    );
    const { most, ever } = await count.stop(40);
    assert.equal(ever, 40, 'each session had one pod');
    assert.equal(most, 5);
    await t.annotate(`40 sessions, 5 places: at most ${most} pods at a time, ${ever} in all`);
  });

  test('a ResourceQuota of the chart limits the sessions and the turns of a namespace', async (t) => {
    const namespace = await makeNamespace(t);
    const limit = async (turns: number) => {
      const values = `image.registry="localhost",image.tag="e2e",quotas=${JSON.stringify([{ namespace, sessions: 2, turns }])}`;
      const chart = join(checkout, 'charts/berth');
      const args = ['template', release, chart, '--show-only', 'templates/quotas.yaml', '--set-json', values];
      await kubectl(['apply', '-f', '-'], { input: await helm(args) });
    };
    const counts = (turns: string) =>
      until(
        namespace,
        'resourcequota',
        release,
        (quota) => quota.status?.used?.['count/turns.berth.dev'] === turns,
        600_000,
      );
    await limit(1);
    await counts('0');
    // Kubernetes counts by watches of its own, which a new cluster begins late: until then it may take a count back. An end that it has seen shows them.
    await apply(turn(namespace, 'probe', 'nobody', 'hello'));
    await counts('1');
    await remove('turn', 'probe', '-n', namespace);
    await counts('0');
    const input = { turns: 'One', input: 'hello' };
    await apply(session(namespace, 'first', input));
    assert.equal((await ended(namespace, 'first')).status.phase, 'Succeeded');
    await apply(session(namespace, 'second', input));
    await until(namespace, 'session', 'second', ({ status }) =>
      status?.conditions?.some(({ reason }: Any) => reason === 'TurnQuotaExceeded'),
    );
    await assert.rejects(
      apply(session(namespace, 'third')),
      /exceeded quota: berth, requested: count\/sessions\.berth\.dev=1/,
    );
    await limit(2);
    assert.equal((await ended(namespace, 'second')).status.phase, 'Succeeded');
  });

  test('a session that is idle for too long gives up its pod, and goes on with its next turn', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(
      session(namespace, 'py', { ...spec, timeouts: { idle: '3s' } }),
      turn(namespace, 'py-1', 'py', { note: 'one' }),
    );
    const first = await ended(namespace, 'py-1');
    const asleep = await until(namespace, 'session', 'py', ({ status }) => status?.phase === 'Suspended');
    assert.equal(asleep.status.podName, undefined);
    assert.deepEqual((await get(['pods', '-n', namespace])).items, []);
    await apply(turn(namespace, 'py-2', 'py', { note: 'two' }));
    const { status } = await ended(namespace, 'py-2');
    assert.deepEqual(status.output.notes, ['one', 'two']);
    // The session may have been suspended before its first turn existed, so that turn need not be of incarnation 1.
    assert.equal(status.incarnation, first.status.incarnation + 1);
  });

  test('a session whose turn runs longer than its idle time keeps its pod', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(
      session(namespace, 'py', { ...spec, timeouts: { idle: '2s' } }),
      turn(namespace, 'py-1', 'py', { note: 'one', sleep: 8 }),
    );
    const begun = await until(namespace, 'turn', 'py-1', ({ status }) => status.podUID);
    const { status } = await ended(namespace, 'py-1');
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status.error));
    assert.equal(status.attempt, 1);
    assert.equal(status.podUID, begun.status.podUID);
  });
});
