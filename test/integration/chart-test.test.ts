import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Any, find, renderWithTests as render } from '../support/chart.ts';

/** Name of the Role and its binding: the namespace of the session may have those of another release, too. */
const ROLE = 'berth-test.berth-system';

const made = (objects: Any[]) => objects.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === 'test');
const environment = (objects: Any[]) =>
  Object.fromEntries(
    find(objects, 'Pod', 'berth-test').spec.containers[0].env.map(({ name, value }: Any) => [name, value]),
  );

describe('helm test of the chart', () => {
  test('makes a pod with an account of its own, whose rights are those to run one session, and removes all after success', async () => {
    const objects = await render();
    const hooks = made(objects);
    assert.deepEqual(hooks.map(({ kind }) => kind).sort(), ['Pod', 'Role', 'RoleBinding', 'ServiceAccount']);
    for (const { kind, metadata } of hooks) {
      assert.equal(metadata.annotations['helm.sh/hook-delete-policy'], 'before-hook-creation,hook-succeeded');
      // The controller makes no pods in Berth's own namespace.
      assert.equal(metadata.namespace, /^Role/.test(kind) ? 'default' : 'berth-system');
    }
    const verbs = ['create', 'list', 'watch', 'delete'];
    assert.deepEqual(find(hooks, 'Role', ROLE).rules, [{ apiGroups: ['berth.dev'], resources: ['sessions'], verbs }]);
    const { spec } = find(hooks, 'Pod', 'berth-test');
    assert.equal(spec.serviceAccountName, find(hooks, 'ServiceAccount', 'berth-test').metadata.name);
    assert.equal(spec.restartPolicy, 'Never');
    assert.deepEqual(spec.containers[0].args, ['check']);
    assert.equal(
      spec.containers[0].image,
      find(objects, 'Deployment', 'berth-controller').spec.template.spec.containers[0].image,
    );
  });

  test('runs its session with the default class, in a namespace that is served', async () => {
    const { BERTH_CHECK_NAMESPACE, BERTH_CHECK_CLASS } = environment(await render());
    assert.deepEqual([BERTH_CHECK_NAMESPACE, BERTH_CHECK_CLASS], ['default', 'default']);
    const listed = await render('namespaces={a,b}', 'defaultClass.name=agents');
    assert.equal(environment(listed).BERTH_CHECK_NAMESPACE, 'a');
    assert.equal(environment(listed).BERTH_CHECK_CLASS, 'agents');
    for (const kind of ['Role', 'RoleBinding']) assert.equal(find(made(listed), kind, ROLE).metadata.namespace, 'a');
    const set = await render('namespaces={a,b}', 'test.namespace=b', 'test.class=coding', 'test.timeout=90.5s');
    assert.deepEqual(environment(set), {
      ...environment(set),
      BERTH_CHECK_NAMESPACE: 'b',
      BERTH_CHECK_CLASS: 'coding',
      BERTH_CHECK_TIMEOUT: '90.5s',
    });
  });

  test('ends later than the time of its session, so that it can say why and remove the session', async () => {
    const deadline = async (timeout: string) =>
      find(await render(`test.timeout=${timeout}`), 'Pod', 'berth-test').spec.activeDeadlineSeconds;
    assert.deepEqual([await deadline('2m'), await deadline('90.5s')], [240, 211]);
  });
});
