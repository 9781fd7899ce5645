import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { namespaceLabels } from '../../../controller/caches/namespaces.ts';
import { KubeClient } from '../../../core/kube/client.ts';
import { loadConnection } from '../../../core/kube/config.ts';
import { namespaces } from '../../../core/kube/resources.ts';
import type { Resource } from '../../../core/kube/types.ts';
import type { Clock } from '../../../core/runtime.ts';
import { silentLogger, systemClock, systemRandom } from '../../../core/system.ts';
import { eventually } from '../../support/eventually.ts';
import { installed } from '../../support/installed.ts';
import { makeNamespace } from '../../support/pod-count.ts';

/** Minutes pass in seconds. */
const hurried: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * 100,
  setTimer: (ms, fn) => systemClock.setTimer(ms / 100, fn),
};
const GROUP = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: true };
const roles: Resource = { ...GROUP, plural: 'roles', kind: 'Role' };
const roleBindings: Resource = { ...GROUP, plural: 'rolebindings', kind: 'RoleBinding' };

describe('labels of namespaces', () => {
  const cluster = installed();
  beforeAll(async () => {
    await makeNamespace(cluster, 'team', { tier: 'gold' });
    await makeNamespace(cluster, 'secret', { tier: 'gold' });
  });
  const relabel = (tier: string) =>
    cluster.client.patch(namespaces, { name: 'team' }, { metadata: { labels: { tier } } });

  test('are read with rights in single namespaces, where no others may be seen, and again and again', async () => {
    const rule = { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] };
    const metadata = { name: 'reader', namespace: 'team' };
    await cluster.client.create(roles, { metadata, rules: [rule] } as never);
    const roleRef = { apiGroup: GROUP.group, kind: 'Role', name: 'reader' };
    const subjects = [{ kind: 'User', name: 'narrow', apiGroup: GROUP.group }];
    await cluster.client.create(roleBindings, { metadata, roleRef, subjects } as never);
    const token = cluster.server.mintToken({ username: 'narrow', groups: ['system:authenticated'] });
    const config = JSON.stringify(cluster.server.kubeconfig(token));
    const path = join(cluster.home, 'narrow.json');
    writeFileSync(path, config);
    const connection = await loadConnection({ path });
    const common = { clock: hurried, random: systemRandom, log: silentLogger };
    const api = new KubeClient({ connection, ...common, clock: systemClock, userAgent: 'test' });
    let changes = 0;
    const labels = namespaceLabels({ api, ...common, namespaces: ['team', 'secret'], onChange: () => changes++ });
    assert.equal(labels.of('team'), undefined);
    labels.start();
    await eventually(() => labels.of('team')?.tier === 'gold', { what: 'labels read' });
    await relabel('silver');
    await eventually(() => labels.of('team')?.tier === 'silver', { what: 'labels read again' });
    assert.ok(changes >= 2);
    assert.equal(labels.of('secret'), undefined, 'what may not be read is not known');
    assert.equal(labels.of('elsewhere'), undefined);
    await labels.stop();
    await api.close();
  });

  test('are watched where all may be seen, and none are an empty set', async () => {
    const common = { clock: systemClock, random: systemRandom, log: silentLogger };
    const labels = namespaceLabels({ api: cluster.client, ...common, onChange: () => undefined });
    assert.equal(labels.of('team'), undefined);
    labels.start();
    await eventually(() => labels.of('team') !== undefined, { what: 'labels listed' });
    await relabel('bronze');
    await eventually(() => labels.of('team')?.tier === 'bronze', { what: 'labels watched' });
    await makeNamespace(cluster, 'plain');
    await eventually(() => labels.of('plain') !== undefined, { what: 'a new namespace' });
    await labels.stop();
  });
});
