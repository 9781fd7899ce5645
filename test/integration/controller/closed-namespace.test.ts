import assert from 'node:assert/strict';
import { beforeAll, test } from 'vitest';
import type { Resource } from '../../../core/kube/types.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import { eventually } from '../../support/eventually.ts';
import { ONE_LEADER } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';
import { makeNamespace } from '../../support/pod-count.ts';

const GROUP = { group: 'rbac.authorization.k8s.io', version: 'v1' };
const clusterRoleBindings: Resource = {
  ...GROUP,
  plural: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  namespaced: false,
};
const clusterRoles: Resource = { ...GROUP, plural: 'clusterroles', kind: 'ClusterRole', namespaced: false };
const roleBindings: Resource = { ...GROUP, plural: 'rolebindings', kind: 'RoleBinding', namespaced: true };
const subjects = [{ kind: 'ServiceAccount', name: 'berth-controller', namespace: 'berth-system' }];
const roleRef = (name: string) => ({ apiGroup: GROUP.group, kind: 'ClusterRole', name });
const agent = { command: ['cat'], input: 'Text', result: 'Text' } as const;

const cluster = installed({ BERTH_NAMESPACES: 'default,lost', ...ONE_LEADER });
beforeAll(async () => {
  await makeNamespace(cluster, 'lost');
  // Rights as the chart grants them when namespaces are listed.
  const rules = [{ apiGroups: ['berth.dev'], resources: ['sessionclasses'], verbs: ['get', 'list', 'watch'] }];
  await cluster.client.create(clusterRoles, { metadata: { name: 'classes' }, rules } as never);
  const classes = { metadata: { name: 'classes' }, roleRef: roleRef('classes'), subjects };
  await cluster.client.create(clusterRoleBindings, classes as never);
  await cluster.client.delete(clusterRoleBindings, { name: 'berth-controller' });
  await allow('default');
});

const allow = (namespace: string) => {
  const binding = { metadata: { name: 'berth', namespace }, roleRef: roleRef('berth-controller'), subjects };
  return cluster.client.create(roleBindings, binding as never);
};

test('a listed namespace whose rights come while the controller starts is served with the others', async () => {
  await cluster.create('waits', { agent } as never, 'lost');
  const controller = cluster.startController();
  const isRefused = () => /"resource":"sessions","namespace":"lost".*is forbidden/.test(controller.log());
  await eventually(isRefused, { what: 'the namespace that cannot be read' });
  await allow('lost');
  const ref = { namespace: 'lost', name: 'waits' };
  const served = async () => (await cluster.client.get(sessions, ref)).status?.phase === 'Ready';
  await eventually(served, { timeoutMs: 180_000, what: 'the namespace is served' });
  await cluster.create('works', { agent } as never);
  await cluster.turn('works', 'works-1', 'hello');
  assert.equal((await cluster.ended('works-1', 180_000)).status?.output, 'hello');
});
