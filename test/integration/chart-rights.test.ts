import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { REQUIRED } from '../support/chart.ts';
import { tools } from '../support/tools.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');

interface Role {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  rules: { apiGroups: string[]; resources: string[]; resourceNames?: string[]; verbs: string[] }[];
}

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind, read field by field
type Any = any;

const objectsIn = (text: string): Any[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((object) => object);

const rolesIn = (objects: Any[]): Role[] => objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');

const policiesIn = (objects: Any[]): Any[] => objects.filter(({ kind }) => /^ValidatingAdmissionPolicy/.test(kind));

const inManifests = async (file: string): Promise<Any[]> =>
  objectsIn(await readFile(join(CHECKOUT, 'manifests', 'embedded', file), 'utf8'));

/** Returns the chart's objects in the order in which Helm creates them. */
async function render(release: string, namespace: string, ...more: string[]): Promise<Any[]> {
  const { helm } = await tools();
  const required = REQUIRED.flatMap((value) => ['--set', value]);
  const args = ['template', release, join(CHECKOUT, 'charts', 'berth'), '--namespace', namespace, '--skip-tests'];
  const { stdout } = await promisify(execFile)(helm, [...args, ...required, ...more], { maxBuffer: 16 * 1024 * 1024 });
  return objectsIn(stdout);
}

const ENTER = ['--set', 'api.enter.enabled=true'];

/** Lists every right once, sorted, in the form "berth.dev/sessions watch". */
function rightsOf(roles: Role[]): string[] {
  const rights = roles.flatMap(({ rules }) =>
    // Rights on URLs have neither groups nor resources.
    rules.flatMap(({ apiGroups = [], resources, resourceNames, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => `${group}/${resource} ${verb} ${resourceNames?.join() ?? ''}`.trim()),
        ),
      ),
    ),
  );
  return [...new Set(rights)].sort();
}

describe('the rights of the programs', () => {
  let embedded: Role[];
  beforeAll(async () => {
    embedded = rolesIn(await inManifests('rbac.yaml'));
  });
  const of = (program: string, roles: Role[], kind: string) =>
    rightsOf(roles.filter((role) => role.kind === kind && new RegExp(`\\bberth-${program}`).test(role.metadata.name)));

  test('are the same on the embedded cluster and by the chart', async () => {
    const chart = rolesIn(await render('berth', 'berth-system', ...ENTER));
    for (const program of ['api', 'controller']) {
      for (const kind of ['ClusterRole', 'Role']) {
        assert.deepEqual(of(program, embedded, kind), of(program, chart, kind), `${kind} of the ${program}`);
      }
    }
    assert.ok(of('api', chart, 'ClusterRole').includes('berth.dev/sessions watch'));
  });

  test('of users are the same: the chart’s ClusterRoles, and what these add to view, edit and admin', async () => {
    const own = rolesIn(await inManifests('roles.yaml'));
    const chart = rolesIn(await render('berth', 'berth-system')).filter(({ metadata }) =>
      Object.keys(metadata.labels ?? {}).some((label) => label.startsWith('rbac.authorization.k8s.io/aggregate-to-')),
    );
    const named = (name: string) => own.filter(({ metadata }) => metadata.name === name);
    for (const role of chart)
      assert.deepEqual(rightsOf(named(role.metadata.name)), rightsOf([role]), role.metadata.name);
    for (const name of ['view', 'edit', 'admin']) {
      const added = chart.filter(
        ({ metadata }) => metadata.labels?.[`rbac.authorization.k8s.io/aggregate-to-${name}`] === 'true',
      );
      const ofBerth = rightsOf(named(name)).filter((right) => right.startsWith('berth.dev/'));
      assert.deepEqual(ofBerth, rightsOf(added), name);
    }
    assert.deepEqual(
      own.map(({ metadata }) => metadata.name).sort(),
      [...chart.map(({ metadata }) => metadata.name), 'view', 'edit', 'admin'].sort(),
    );
  });

  test('of the API let it enter no pod unless a value says so, which needs the policies', async () => {
    const by = async (...more: string[]) =>
      of('api', rolesIn(await render('berth', 'berth-system', ...more)), 'ClusterRole');
    const added = new Set(await by(...ENTER)).difference(new Set(await by()));
    assert.deepEqual([...added], ['/pods/exec create', '/pods/exec get']);
    assert.deepEqual(await by('--set', 'api.enter=null'), await by());
    await assert.rejects(by(...ENTER, '--set', 'admissionPolicies.enabled=false'), /needs admissionPolicies.enabled/);
  });

  test('of users inside sessions are part of edit and admin, and of nothing else', async () => {
    const roles = rolesIn(await render('berth', 'berth-system'));
    const inside = roles.filter((role) => rightsOf([role]).some((right) => /sessions\/(exec|files|ports)/.test(right)));
    assert.deepEqual(
      inside.map(({ metadata }) => metadata.name),
      ['berth-enter'],
    );
    const labels = Object.keys(inside[0]?.metadata.labels ?? {}).filter((label) => label.startsWith('rbac.'));
    assert.deepEqual(labels.toSorted(), [
      'rbac.authorization.k8s.io/aggregate-to-admin',
      'rbac.authorization.k8s.io/aggregate-to-edit',
    ]);
    assert.deepEqual(rightsOf(inside), [
      'berth.dev/sessions/exec create',
      'berth.dev/sessions/exec get',
      'berth.dev/sessions/files delete',
      'berth.dev/sessions/files get',
      'berth.dev/sessions/files update',
      'berth.dev/sessions/ports create',
    ]);
  });

  test('of the controller let it own Approvals by Turns where OwnerReferencesPermissionEnforcement asks for `delete`', () => {
    const rights = of('controller', embedded, 'ClusterRole').filter((right) =>
      right.startsWith('berth.dev/approvals '),
    );
    assert.deepEqual(
      rights.map((right) => right.split(' ')[1]),
      ['delete', 'get', 'list', 'patch', 'watch'],
    );
  });

  test('of the API are the same in each of the namespaces that are listed', async () => {
    const chart = rolesIn(await render('berth', 'berth-system', '--set', 'namespaces={one,two}', ...ENTER));
    for (const namespace of ['one', 'two']) {
      const there = chart.filter(({ kind, metadata }) => kind === 'ClusterRole' || metadata.namespace === namespace);
      const rights = rightsOf(there.filter(({ metadata }) => /\bberth-api$/.test(metadata.name)));
      assert.deepEqual(rights, of('api', embedded, 'ClusterRole'));
    }
  });
});

describe('the admission policies', () => {
  test('are the same on the embedded cluster and by the chart', async () => {
    const chart = policiesIn(await render('berth', 'berth-system'));
    for (const { metadata } of chart) {
      assert.equal(metadata.labels['app.kubernetes.io/instance'], 'berth');
      delete metadata.labels;
    }
    // Helm groups objects by kind.
    const key = ({ kind, metadata }: Any) => `${kind}/${metadata.name}`;
    const sorted = (objects: Any[]) => objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
    assert.deepEqual(sorted(chart), sorted(policiesIn(await inManifests('admission.yaml'))));
    assert.equal(chart.length, 30);
  });

  test('of two releases have different names, and each binds to the accounts of its own programs', async () => {
    const releases = await Promise.all([
      render('berth', 'berth-system'),
      render('berth', 'other'),
      render('second', 'berth-system'),
    ]);
    const names = releases.flatMap((objects) =>
      policiesIn(objects).map(({ kind, metadata }) => `${kind}/${metadata.name}`),
    );
    assert.equal(new Set(names).size, names.length);
    for (const objects of releases) {
      const policies = policiesIn(objects);
      const accounts = ['controller', 'api'].map((program) => {
        const { spec, metadata } = objects.find(
          ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith(`-${program}`),
        );
        return `system:serviceaccount:${metadata.namespace}:${spec.template.spec.serviceAccountName}`;
      });
      const conditions = policies.flatMap(({ spec }) => spec.matchConditions ?? []);
      assert.deepEqual(
        [...new Set(conditions.map(({ expression }: { expression: string }) => expression))],
        accounts.map((account) => `request.userInfo.username == '${account}'`),
      );
      for (const { spec } of policies.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding')) {
        assert.ok(
          policies.some(
            ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name === spec.policyName,
          ),
        );
      }
    }
  });

  test('of requesters count in the served namespaces alone, where some are listed', async () => {
    const chart = policiesIn(await render('berth', 'berth-system', '--set', 'namespaces={one,two}'));
    const bound = chart.filter(({ spec }) => spec.matchResources);
    assert.deepEqual(
      bound.map(({ spec }) => [spec.policyName, spec.matchResources]),
      [
        [
          'berth-requester.berth-system',
          {
            matchPolicy: 'Equivalent',
            objectSelector: {},
            namespaceSelector: {
              matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['one', 'two'] }],
            },
          },
        ],
      ],
    );
  });

  test('take the exceptions for meshes and caches from the values', async () => {
    const lists = [
      'meshContainers={istio-init,istio-proxy}',
      'meshTokenAudiences={istio-ca}',
      'cacheClaims={uv.cache}',
    ];
    const chart = policiesIn(
      await render('berth', 'berth-system', ...lists.flatMap((list) => ['--set', `admissionPolicies.${list}`])),
    );
    const pods = chart.find(
      ({ spec, metadata }) => spec.variables && metadata.name === 'berth-controller-pods.berth-system',
    );
    assert.deepEqual(pods.spec.variables.slice(0, 3), [
      { name: 'meshContainers', expression: '["istio-init","istio-proxy"]' },
      { name: 'meshTokenAudiences', expression: '["istio-ca"]' },
      { name: 'cacheClaims', expression: '["uv.cache"]' },
    ]);
  });

  test('refuse to serve sessions in the namespace of the release, which the values may list without them alone', async () => {
    const listed = ['--set', 'namespaces={team,berth-system}'];
    await assert.rejects(
      render('berth', 'berth-system', ...listed),
      /namespaces: lists berth-system, the namespace of/,
    );
    await render('berth', 'berth-system', ...listed, '--set', 'admissionPolicies.enabled=false');
  });

  test('are created after the rights that they ask for, and left out by a value', async () => {
    // The rights of a test of the release are made with the test.
    const kinds = (await render('berth', 'berth-system'))
      .filter(({ metadata }) => !metadata.annotations?.['helm.sh/hook'])
      .map(({ kind }) => kind);
    const rights = ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'];
    const last = Math.max(...rights.map((kind) => kinds.lastIndexOf(kind)));
    assert.ok(last >= 0 && kinds.indexOf('ValidatingAdmissionPolicy') > last, kinds.join());
    const off = await render('berth', 'berth-system', '--set', 'admissionPolicies.enabled=false');
    assert.deepEqual(policiesIn(off), []);
    const earlier = await render('berth', 'berth-system', '--set', 'admissionPolicies=null');
    assert.equal(policiesIn(earlier).length, 30);
  });
});

describe('the FlowSchemas', () => {
  const schemas = (objects: Any[]) => objects.filter(({ kind }) => kind === 'FlowSchema');

  test('are of the accounts of this release alone, come before that of all service accounts, and are left out by a value', async () => {
    for (const [release, namespace] of [
      ['berth', 'berth-system'],
      ['other', 'team'],
    ] as const) {
      const [controller, api] = ['controller', 'api'].map((of) =>
        release === 'berth' ? `berth-${of}` : `other-berth-${of}`,
      ) as [string, string];
      const found = schemas(await render(release, namespace));
      assert.deepEqual(
        found.map(({ metadata, spec }) => [metadata.name, spec.priorityLevelConfiguration.name]),
        [
          [`${namespace}.${controller}-lease`, 'leader-election'],
          [`${namespace}.${controller}`, 'workload-high'],
          [`${namespace}.${api}`, 'workload-low'],
        ],
      );
      for (const [index, { spec }] of found.entries()) {
        assert.ok(spec.matchingPrecedence < 9000);
        const name = index < 2 ? controller : api;
        for (const { subjects } of spec.rules) {
          assert.deepEqual(subjects, [{ kind: 'ServiceAccount', serviceAccount: { name, namespace } }]);
        }
      }
      const [lease] = found[0].spec.rules[0].resourceRules;
      assert.deepEqual([lease.resources, lease.namespaces], [['leases'], [namespace]]);
    }
    assert.deepEqual(schemas(await render('berth', 'berth-system', '--set', 'flowSchemas.enabled=false')), []);
    assert.equal(schemas(await render('berth', 'berth-system', '--set', 'flowSchemas=null')).length, 3);
    assert.equal(schemas(await render('berth', 'berth-system', '--set', 'api.enabled=false')).length, 2);
  });

  test('and the policies are of the accounts that the values name, and each program has one of its own', async () => {
    const named = (controller: string, api: string) => [
      ...['--set', `controller.serviceAccount.name=${controller}`],
      ...['--set', `api.serviceAccount.name=${api}`],
    ];
    const chart = await render('berth', 'berth-system', ...named('one', 'two'));
    const subjects = schemas(chart).flatMap(({ spec }) => spec.rules[0].subjects);
    assert.deepEqual(
      subjects.map(({ serviceAccount }) => serviceAccount.name),
      ['one', 'one', 'two'],
    );
    const conditions = policiesIn(chart).flatMap(({ spec }) => spec.matchConditions ?? []);
    assert.deepEqual(
      [...new Set(conditions.map(({ expression }: { expression: string }) => expression))],
      ['one', 'two'].map((name) => `request.userInfo.username == 'system:serviceaccount:berth-system:${name}'`),
    );
    await assert.rejects(
      render('berth', 'berth-system', ...named('one', 'one')),
      /controller\.serviceAccount\.name and api\.serviceAccount\.name are both one/,
    );
  });
});

describe('the list of pools', () => {
  const pools = (objects: Any[]) => objects.filter(({ kind }) => kind === 'SessionPool');

  test('becomes a SessionPool for each entry, with the class default where nothing else is said, and replicas only where they are', async () => {
    const values = [
      'pools[0].namespace=team-a',
      'pools[1].namespace=team-b',
      'pools[1].class=gpu.large',
      'pools[1].replicas=0',
    ];
    const chart = await render('berth', 'berth-system', ...values.flatMap((value) => ['--set', value]));
    assert.deepEqual(
      pools(chart).map(({ metadata: { namespace, name }, spec }) => ({ namespace, name, spec })),
      [
        { namespace: 'team-a', name: 'default', spec: { class: 'default' } },
        { namespace: 'team-b', name: 'gpu-large', spec: { class: 'gpu.large', replicas: 0 } },
      ],
    );
    assert.deepEqual(pools(await render('berth', 'berth-system')), []);
  });

  test('is refused where an entry has no namespace or a negative number of pods', async () => {
    const set = (...values: string[]) =>
      render('berth', 'berth-system', ...values.flatMap((value) => ['--set', value]));
    await assert.rejects(set('pools[0].class=default'), /namespace/);
    await assert.rejects(set('pools[0].namespace=a', 'pools[0].replicas=-1'), /replicas/);
  });

  test('gives the controller no right to pools where they are turned off', async () => {
    const chart = rolesIn(await render('berth', 'berth-system', '--set', 'controller.sessionPools=false'));
    assert.equal(
      rightsOf(chart.filter(({ metadata }) => /controller/.test(metadata.name))).some((right) =>
        /sessionpools/.test(right),
      ),
      false,
    );
  });
});
