/** A volume as a provisioner makes it: of root, opened to a pod by its fsGroup alone. */
import type { TestContext } from 'vitest';
import { apply, remove } from './cluster.ts';
import { nodeNames, onNode } from './node.ts';

/**
 * Makes one volume on a node and a StorageClass for it, named after the namespace; resolves to the class's name. Both are
 * removed with the test. kind's own storage is hostPath, which everybody may write and fsGroup does not touch.
 */
export async function makeVolume(t: TestContext, namespace: string): Promise<string> {
  const node = (await nodeNames()).at(-1)!;
  const path = `/var/berth-e2e/${namespace}`;
  t.onTestFinished(async () => {
    await remove(`pv/${namespace}`, `storageclass/${namespace}`);
    await onNode(node, ['rm', '-rf', path]);
  });
  await onNode(node, ['install', '-d', '-m', '755', '-o', '0', '-g', '0', path]);
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: [node] };
  await apply(
    {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: namespace } },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: namespace } },
      spec: {
        ...{ capacity: { storage: '16Mi' }, accessModes: ['ReadWriteOnce'], storageClassName: namespace },
        persistentVolumeReclaimPolicy: 'Retain',
        local: { path },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
      },
    },
  );
  return namespace;
}
