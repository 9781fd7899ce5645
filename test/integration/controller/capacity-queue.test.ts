import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { collectionPath } from '../../../core/kube/paths.ts';
import { namespaces } from '../../../core/kube/resources.ts';
import { type StoredSession, sessionclasses, sessions, turns } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, pythonAgent } from '../../support/installation.ts';
import { testInstalled } from '../../support/installed.ts';
import { makeNamespace } from '../../support/pod-count.ts';

type Status = NonNullable<StoredSession['status']>;

/** A test of the queue with an installation of its own, which has the namespaces `other` and `free`. */
function testQueue(name: string, use: (queue: Awaited<ReturnType<typeof theQueue>>) => Promise<void>): void {
  testInstalled(name, async (cluster) => use(await theQueue(cluster)));
}

async function theQueue(cluster: Installation) {
  const folder = join(cluster.home, 'released');
  mkdirSync(folder);
  await makeNamespace(cluster, 'other', {});
  await makeNamespace(cluster, 'free', { tier: 'free' });

  /** A run that is busy until `release`. */
  const run = (name: string, spec: object = {}, namespace = 'default') => {
    const wait = `while not os.path.exists('${folder}/${name}'): time.sleep(0.05)\nanswer(request["input"])\n`;
    return cluster.create(name, { agent: pythonAgent(wait), turns: 'One', input: name, ...spec }, namespace);
  };
  const release = (...names: string[]) => {
    for (const name of names) writeFileSync(join(folder, name), '');
  };
  const until = (name: string, what: string, check: (status: Status) => boolean, namespace = 'default') =>
    eventually(
      async () => {
        const status = await get(name, namespace);
        return check(status) ? status : undefined;
      },
      { what: `session ${namespace}/${name} ${what}` },
    );
  const get = async (name: string, namespace = 'default') =>
    (await cluster.client.get(sessions, { namespace, name })).status ?? {};
  const running = (name: string, namespace = 'default') =>
    until(name, 'running', ({ phase }) => phase === 'Running', namespace);
  const finished = async (name: string, namespace = 'default') => {
    await until(name, 'finished', ({ phase }) => phase === 'Finished', namespace);
    const { status } = await cluster.client.get(turns, { namespace, name });
    assert.equal(status?.phase, 'Succeeded');
    return String(status?.finishedAt);
  };
  return { cluster, run, release, until, running, finished };
}

describe.concurrent('the queue in front of the running slots', () => {
  testQueue(
    'is round robin over namespaces, then by priority, and shows position, reason, holders and since when',
    async ({ cluster, run, release, until, running, finished }) => {
      let controller = cluster.startController({ BERTH_MAX_RUNNING: '1' });
      await run('holder');
      await running('holder');
      await run('low');
      await until('low', 'in the queue', ({ queue }) => queue?.position === 1);
      await run('high', { priority: 10 });
      await run('elsewhere', {}, 'other');
      const isFirst = ({ queue }: Status) => queue?.position === 1 && queue.reason === 'AtCapacity';
      const queued = await until('elsewhere', 'in the queue', isFirst, 'other');
      assert.equal(queued.phase, 'Queued');
      assert.deepEqual(
        queued.queue?.holders?.map(({ name }) => name),
        ['default/holder'],
      );
      const admitted = queued.conditions?.find(({ type }) => type === 'Admitted');
      assert.match(
        String(admitted?.message),
        /^All 1 running slots of the installation are taken, held by default\/holder \(since 20.*Z\)\.$/,
      );
      await until('high', 'before low', ({ queue }) => queue?.position === 2);
      await until('low', 'last', ({ queue }) => queue?.position === 3);

      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const tableIsRight = async () => {
        const table = (await cluster.client.raw('GET', collectionPath(sessions, 'default'), { accept })) as {
          columnDefinitions: { name: string }[];
          rows: { cells: unknown[]; object: { metadata: { name: string } } }[];
        };
        const low = table.rows.find(({ object }) => object.metadata.name === 'low');
        const shown = (column: string) => low?.cells[table.columnDefinitions.findIndex(({ name }) => name === column)];
        assert.deepEqual([shown('Reason'), shown('Queue')], ['AtCapacity', 3]);
        assert.match(String(shown('Since')), /^\d+[sm]/);
        assert.match(String(shown('Message')), /held by default\/holder/);
        return true;
      };
      // A leader that could not renew its lease for a moment does not know the capacity until it leads again.
      await eventually(tableIsRight, { what: 'what kubectl shows' });

      // The order outlives the leader.
      await controller.kill('SIGKILL');
      controller = cluster.startController({ BERTH_MAX_RUNNING: '1' });
      release('low', 'high', 'elsewhere');
      release('holder');
      const [elsewhere, high, last] = [
        await finished('elsewhere', 'other'),
        await finished('high'),
        await finished('low'),
      ];
      assert.ok(elsewhere < high && high < last, `${elsewhere}, ${high}, ${last}`);
    },
  );

  testQueue(
    'starts nothing where the maximum is 0, and all when it is raised',
    async ({ cluster, run, release, until, finished }) => {
      let controller = cluster.startController({ BERTH_MAX_RUNNING: '0' });
      release('none');
      await run('none');
      const { conditions } = await until('none', 'queued', ({ queue }) => queue?.reason === 'AtCapacity');
      assert.match(String(conditions?.find(({ type }) => type === 'Admitted')?.message), /the limit is 0/);
      assert.equal((await cluster.podsOf('none')).length, 0);
      await controller.kill('SIGTERM');
      controller = cluster.startController({ BERTH_MAX_RUNNING: '1' });
      await finished('none');
    },
  );

  testQueue(
    'applies a lowered limit gradually: running sessions continue, and none starts until a slot is free',
    async ({ cluster, run, release, until, running, finished }) => {
      cluster.startController();
      await cluster.createClass('narrow', { overrides: ['agent.command'], limits: { maxRunning: 2 } });
      for (const name of ['first', 'second']) {
        await run(name, { class: 'narrow' });
        await running(name);
      }
      await cluster.client.patch(sessionclasses, { name: 'narrow' }, { spec: { limits: { maxRunning: 1 } } });
      await run('third', { class: 'narrow' });
      const told = /2 are taken of the 1 running slots of class "narrow"/;
      const message = ({ conditions }: Status) => String(conditions?.find(({ type }) => type === 'Admitted')?.message);
      await until('third', 'told so', (status) => told.test(message(status)));
      release('first');
      const one = await finished('first');
      await until('third', 'told so', (status) => /^All 1 running slots of class "narrow"/.test(message(status)));
      release('second', 'third');
      assert.ok(one < (await finished('second')));
      await finished('third');
    },
  );

  testQueue(
    'limits namespaces by their labels, as they are now',
    async ({ cluster, run, release, until, running, finished }) => {
      cluster.startController();
      const limits = { namespaces: [{ selector: { matchLabels: { tier: 'free' } }, maxRunning: 1 }] };
      await cluster.createClass('tiered', { overrides: ['agent.command'], limits });
      const spec = { class: 'tiered' };
      for (const name of ['paid-1', 'paid-2']) await run(name, spec, 'other');
      for (const name of ['paid-1', 'paid-2']) await running(name, 'other');
      await run('free-1', spec, 'free');
      await running('free-1', 'free');
      await run('free-2', spec, 'free');
      const { conditions } = await until('free-2', 'queued', ({ queue }) => queue?.reason === 'AtCapacity', 'free');
      assert.match(
        String(conditions?.find(({ type }) => type === 'Admitted')?.message),
        /^All 1 running slots of class "tiered" in namespace "free" are taken, held by free\/free-1/,
      );
      await cluster.client.patch(namespaces, { name: 'free' }, { metadata: { labels: { tier: null } } });
      await running('free-2', 'free');
      release('paid-1', 'paid-2', 'free-1', 'free-2');
      for (const name of ['free-1', 'free-2']) await finished(name, 'free');
    },
  );
});
