import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apiConfig } from '../../api/config.ts';
import { controllerConfig } from '../../controller/config.ts';
import { parseConfig } from '../../core/program/config.ts';
import { type Any, find, render } from '../support/chart.ts';

const PROGRAMS = ['api', 'controller'] as const;
type Program = (typeof PROGRAMS)[number];

const deployment = (objects: Any[], program: Program) => find(objects, 'Deployment', `berth-${program}`);
const podOf = (objects: Any[], program: Program) => deployment(objects, program).spec.template;
/** Variables of a program's container by name; those that the kubelet fills are empty. */
const environment = (objects: Any[], program: Program): Record<string, string> =>
  Object.fromEntries(podOf(objects, program).spec.containers[0].env.map(({ name, value = '' }: Any) => [name, value]));

describe('replicas of the programs', () => {
  test('are two, on two nodes where there are two, and one of them at a time may be evicted', async () => {
    const objects = await render();
    for (const program of PROGRAMS) {
      const { replicas, selector } = deployment(objects, program).spec;
      assert.equal(replicas, 2);
      const [spread] = podOf(objects, program).spec.topologySpreadConstraints;
      assert.deepEqual(
        [spread.topologyKey, spread.whenUnsatisfiable, spread.labelSelector, spread.matchLabelKeys],
        ['kubernetes.io/hostname', 'ScheduleAnyway', selector, ['pod-template-hash']],
      );
      const budget = find(objects, 'PodDisruptionBudget', `berth-${program}`);
      assert.deepEqual(budget.spec, { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector });
    }
  });

  test('have no budget where there is one, or a value says so, so that a node can be drained', async () => {
    const budgets = async (...values: string[]) =>
      (await render(...values))
        .filter(({ kind }) => kind === 'PodDisruptionBudget')
        .map(({ metadata }) => metadata.name);
    assert.deepEqual(await budgets('api.replicas=1'), ['berth-controller']);
    assert.deepEqual(await budgets('controller.podDisruptionBudget.enabled=false'), ['berth-api']);
    assert.deepEqual(await budgets('api.enabled=false'), ['berth-controller']);
    // As `--reuse-values` of a release that did not know the value.
    assert.equal((await budgets('api.podDisruptionBudget=null', 'controller.podDisruptionBudget=null')).length, 2);
  });

  test('of the API are replaced only by ones that serve, and end within their grace after the delay in which they still serve', async () => {
    for (const [values, delayMs] of [
      [[], 5_000],
      [['api.shutdownDelaySeconds=90'], 90_000],
      [['api.shutdownDelaySeconds=0'], 0],
    ] as const) {
      const objects = await render(...values);
      assert.deepEqual(deployment(objects, 'api').spec.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 });
      const config = parseConfig(apiConfig, environment(objects, 'api'));
      assert.equal(config.BERTH_API_SHUTDOWN_DELAY, delayMs);
      const { terminationGracePeriodSeconds } = podOf(objects, 'api').spec;
      // api/main.ts cuts what is left 9 s after the delay.
      assert.ok(terminationGracePeriodSeconds * 1000 >= delayMs + 10_000, String(terminationGracePeriodSeconds));
    }
  });
});

describe('settings of the programs', () => {
  /** Settings of the embedded cluster, whose pods are processes: the images have what these name. */
  const EMBEDDED = ['BERTH_UV', 'BERTH_BUILDER', 'BERTH_IMAGES_ARE_PROGRAMS'];

  test('all have a value of the chart, and the chart sets none that its program does not read', async () => {
    const objects = await render(
      ...['api.tls.secretName=cert', 'namespaces={one}', 'quotas[0].namespace=one', 'quotas[0].storeBytes=1000000'],
      ...['api.host=::', 'controller.healthHost=::'],
    );
    for (const [program, config] of [
      ['api', apiConfig],
      ['controller', controllerConfig],
    ] as const) {
      const read = Object.keys(config.shape).filter((name) => !EMBEDDED.includes(name));
      assert.deepEqual(Object.keys(environment(objects, program)).toSorted(), read.toSorted(), program);
    }
  });

  test('of the controller have the defaults of the controller, and are those of the values where these say so', async () => {
    const config = async (...values: string[]) =>
      parseConfig(controllerConfig, environment(await render(...values), 'controller'));
    const { BERTH_MAX_RUNNING, BERTH_PYTHON_RUNNER_IMAGE, ...byDefault } = await config();
    const { BERTH_RUNNER_IMAGE } = byDefault;
    assert.deepEqual(byDefault, parseConfig(controllerConfig, { BERTH_RUNNER_IMAGE }));
    assert.ok(BERTH_MAX_RUNNING && BERTH_PYTHON_RUNNER_IMAGE);
    const values = {
      maxRunning: 1,
      nodeGrace: '2s',
      storeCeilingBytes: 3,
      storeShareFactor: 4,
      leaseDuration: '5s',
      attachLinger: '6s',
      garbageInterval: '7s',
      workers: 8,
      healthHost: '0.0.0.0',
      watchNodes: false,
      agentFiles: false,
      sessionPools: false,
      logLevel: 'warn',
      logFormat: 'text',
    };
    const set = await config(...Object.entries(values).map(([name, value]) => `controller.${name}=${value}`));
    assert.deepEqual(
      [
        ...[set.BERTH_MAX_RUNNING, set.BERTH_NODE_GRACE, set.BERTH_STORE_CEILING_BYTES, set.BERTH_STORE_SHARE_FACTOR],
        ...[set.BERTH_LEASE_DURATION, set.BERTH_ATTACH_LINGER, set.BERTH_GARBAGE_INTERVAL, set.BERTH_WORKERS],
        ...[set.BERTH_HEALTH_HOST, set.BERTH_WATCH_NODES, set.BERTH_AGENT_FILES, set.BERTH_SESSION_POOLS],
        ...[set.BERTH_LOG_LEVEL, set.BERTH_LOG_FORMAT],
      ],
      [1, 2_000, 3, 4, 5_000, 6_000, 7_000, 8, '0.0.0.0', false, false, false, 'warn', 'text'],
    );
    assert.equal(environment(await render('api.host=::1'), 'api').BERTH_API_HOST, '::1');
  });

  test('cannot be set beside their values, while other variables, volumes and mounts can be added', async () => {
    const added = (program: Program, name: string) => [
      ...[`${program}.extraEnv[0].name=${name}`, `${program}.extraEnv[0].value=x`],
      ...[`${program}.extraVolumes[0].name=ca`, `${program}.extraVolumes[0].configMap.name=ca`],
      ...[`${program}.extraVolumeMounts[0].name=ca`, `${program}.extraVolumeMounts[0].mountPath=/ca`],
    ];
    for (const program of PROGRAMS) {
      const { spec } = podOf(await render(...added(program, 'HTTPS_PROXY'), 'api.tls.secretName=cert'), program);
      assert.deepEqual(spec.containers[0].env.at(-1), { name: 'HTTPS_PROXY', value: 'x' });
      assert.deepEqual(spec.volumes.at(-1), { name: 'ca', configMap: { name: 'ca' } });
      assert.deepEqual(spec.containers[0].volumeMounts.at(-1), { name: 'ca', mountPath: '/ca' });
      assert.equal(spec.volumes.length, program === 'api' ? 2 : 1);
      await assert.rejects(
        render(...added(program, 'BERTH_LOG_LEVEL')),
        new RegExp(`${program}.extraEnv: BERTH_LOG_LEVEL is a setting of Berth; set the value of the chart`),
      );
    }
    assert.equal(podOf(await render(...added('api', 'HTTPS_PROXY')), 'api').spec.volumes.length, 1);
  });
});

describe('names, labels and annotations of the programs', () => {
  test('are the release’s, and another name or labels of one’s own where the values have them', async () => {
    const names = async (...values: string[]) =>
      (await render(...values)).filter(({ kind }) => kind === 'Deployment').map(({ metadata }) => metadata.name);
    assert.deepEqual(await names('nameOverride=agents'), ['berth-agents-api', 'berth-agents-controller']);
    assert.deepEqual(await names('fullnameOverride=x', 'nameOverride=agents'), ['x-api', 'x-controller']);
    await assert.rejects(render('fullnameOverride=Not_a_name'), /fullnameOverride/);

    const objects = await render(
      ...['commonLabels.team=platform', 'api.podLabels.tier=front', 'api.podAnnotations.a=b'],
      ...['api.deploymentAnnotations.c=d', 'api.serviceAccount.annotations.e=f'],
    );
    // Classes, and CRDs, outlive the release.
    for (const { kind, metadata } of objects.filter(({ kind }) => kind !== 'CustomResourceDefinition')) {
      assert.equal(metadata.labels.team, 'platform', `${kind}/${metadata.name}`);
    }
    for (const program of PROGRAMS) {
      const { labels } = podOf(objects, program).metadata;
      assert.deepEqual([labels.team, labels.tier], ['platform', program === 'api' ? 'front' : undefined]);
      // A selector cannot be changed later.
      assert.deepEqual(Object.keys(deployment(objects, program).spec.selector.matchLabels).length, 3);
    }
    assert.deepEqual(podOf(objects, 'api').metadata.annotations, { a: 'b' });
    assert.deepEqual(deployment(objects, 'api').metadata.annotations, { c: 'd' });
    assert.deepEqual(find(objects, 'ServiceAccount', 'berth-api').metadata.annotations, { e: 'f' });
    await assert.rejects(render('commonLabels.app\\.kubernetes\\.io/name=x'), /commonLabels/);
  });

  test('of service accounts are the same in pods, bindings, FlowSchemas and admission policies, whoever makes the accounts', async () => {
    for (const create of [true, false]) {
      const objects = await render(
        ...PROGRAMS.flatMap((program) => [
          `${program}.serviceAccount.name=my-${program}`,
          `${program}.serviceAccount.create=${create}`,
        ]),
        'namespaces={one}',
      );
      const made = objects
        .filter(({ kind, metadata }) => kind === 'ServiceAccount' && !metadata.annotations?.['helm.sh/hook'])
        .map(({ metadata }) => metadata.name);
      assert.deepEqual(made.toSorted(), create ? ['my-api', 'my-controller'] : []);
      for (const program of PROGRAMS) assert.equal(podOf(objects, program).spec.serviceAccountName, `my-${program}`);
      const text = JSON.stringify(objects);
      assert.doesNotMatch(text, /"kind":"ServiceAccount","name":"berth-(api|controller)"/);
      assert.doesNotMatch(text, /serviceaccount:berth-system:berth-/);
      for (const program of PROGRAMS) {
        const subjects = objects
          .filter(({ kind, metadata }) => /RoleBinding$/.test(kind) && metadata.name.includes(`berth-${program}`))
          .flatMap((binding) => binding.subjects.map(({ name }: Any) => name));
        assert.deepEqual([...new Set(subjects)], [`my-${program}`]);
        assert.ok(text.includes(`'system:serviceaccount:berth-system:my-${program}'`));
      }
      assert.ok(text.includes('"serviceAccount":{"name":"my-controller"'));
    }
    await assert.rejects(
      render('api.serviceAccount.create=false'),
      /api.serviceAccount.create is false, but api.serviceAccount.name is empty; name the service account/,
    );
  });
});

describe('NetworkPolicies of the programs', () => {
  const on = (objects: Any[]): Record<string, Any> =>
    Object.fromEntries(
      objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ metadata, spec }) => [metadata.name, spec]),
    );
  const ENABLED = 'networkPolicies.enabled=true';
  const APPS = 'networkPolicies.api.from[0].namespaceSelector.matchLabels.team=a';
  const MONITORING = 'networkPolicies.metrics.from[0].namespaceSelector.matchLabels.team=monitoring';
  const team = (name: string) => ({ namespaceSelector: { matchLabels: { team: name } } });

  test('are none by default, and let everybody reach the API and nobody the controller where nothing else is said', async () => {
    assert.deepEqual(on(await render()), {});
    assert.deepEqual(on(await render('networkPolicies=null')), {});
    const objects = await render(ENABLED);
    const policies = on(objects);
    const selectorOf = (program: Program) => ({ podSelector: deployment(objects, program).spec.selector });
    assert.deepEqual(policies, {
      'berth-api': {
        ...selectorOf('api'),
        policyTypes: ['Ingress'],
        ingress: [{ ports: [{ protocol: 'TCP', port: 8080 }] }],
      },
      'berth-controller': { ...selectorOf('controller'), policyTypes: ['Ingress'] },
    });
    const ports = PROGRAMS.flatMap((program) =>
      podOf(objects, program).spec.containers[0].ports.map(({ containerPort }: Any) => containerPort),
    );
    assert.deepEqual(ports, [8080, 8081]);
    assert.deepEqual(Object.keys(on(await render(ENABLED, 'api.enabled=false'))), ['berth-controller']);
  });

  test('let in whom the values name: callers to the API, and who reads metrics to both', async () => {
    const { 'berth-api': api, 'berth-controller': controller } = on(await render(ENABLED, APPS, MONITORING));
    assert.deepEqual(api.ingress[0].from, [team('a'), team('monitoring')]);
    assert.deepEqual(controller.ingress, [{ ports: [{ protocol: 'TCP', port: 8081 }], from: [team('monitoring')] }]);
    const { 'berth-api': open } = on(await render(ENABLED, MONITORING));
    assert.equal(open.ingress[0].from, undefined, 'everybody may still call the API');
  });

  test('let out nothing but requests to the API server where the values have its addresses', async () => {
    const values = ['cidr=10.96.0.1/32', 'port=443'].map((value) => `networkPolicies.apiServer[0].${value}`);
    const proxy = 'networkPolicies.extraEgress[0].to[0].podSelector.matchLabels.app=proxy';
    for (const { policyTypes, egress } of Object.values(on(await render(ENABLED, ...values, proxy)))) {
      assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
      assert.deepEqual(egress, [
        { to: [{ ipBlock: { cidr: '10.96.0.1/32' } }], ports: [{ protocol: 'TCP', port: 443 }] },
        { to: [{ podSelector: { matchLabels: { app: 'proxy' } } }] },
      ]);
    }
    await assert.rejects(render(ENABLED, 'networkPolicies.apiServer[0].cidr=10.96.0.1'), /apiServer/);
  });
});
