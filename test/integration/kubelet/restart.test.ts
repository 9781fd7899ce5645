import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Pod } from '../../../local/kubelet/types.ts';
import { TestCluster } from './cluster.ts';

describe('a kubelet that is started again', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start();
  });
  afterAll(() => cluster.stop());

  test('takes a pod whose record a power loss left empty for one that ran', async () => {
    await cluster.restart(async () => {
      const { metadata } = await cluster.create('unknown', 'echo again');
      const folder = join(cluster.home, 'kubelet', metadata.uid);
      mkdirSync(folder);
      writeFileSync(join(folder, 'pod.json'), '');
    });
    const { status } = await cluster.phase('unknown', 'Succeeded', 'Failed');
    assert.deepEqual([status?.phase, status?.reason], ['Failed', 'NodeRestart']);
    await cluster.create('next', 'true');
    await cluster.phase('next', 'Succeeded');
  });
  test('has no record of processes that have ended, whose numbers others may have by now', async () => {
    const recorded = ({ metadata }: Pod) =>
      JSON.parse(readFileSync(join(cluster.home, 'kubelet', metadata.uid, 'pod.json'), 'utf8')).containers.main;
    await cluster.create('ended', 'read line', { stdin: true });
    assert.ok(recorded(await cluster.phase('ended', 'Running')).process.pid > 0);
    (await cluster.attach('ended')).send('go\n');
    assert.deepEqual(recorded(await cluster.phase('ended', 'Succeeded')), { restartCount: 0 });
  });
});
