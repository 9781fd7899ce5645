import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
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
});
