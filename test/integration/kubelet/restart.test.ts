import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { PersistentVolumeClaim } from '../../../core/kube/builtin.ts';
import { persistentVolumeClaims } from '../../../core/kube/resources.ts';
import type { Pod } from '../../../local/kubelet/types.ts';
import { eventually } from '../../support/eventually.ts';
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
  test('prepares a pod once more that waits for a Secret', async () => {
    const claim = {
      metadata: { name: 'workspace', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    await cluster.store.create(persistentVolumeClaims, claim as PersistentVolumeClaim);
    const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'word', key: 'word' } } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'workspace' } }];
    await cluster.create('waits', 'echo "$WORD"', { env, volumeMounts }, { volumes });
    await eventually(async () => (await cluster.waiting('waits')) === 'secret "word" not found');
    await cluster.restart();
    await cluster.secret('word', 'hidden');
    await cluster.phase('waits', 'Succeeded', 'Failed');
    assert.equal((await cluster.log('waits')).text, 'hidden\n');
  });
});
