import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import type { Cli } from '../../../../cli/cli.ts';
import type { KubeCluster } from '../../../../cli/cluster/cluster.ts';
import { checkCluster } from '../../../../cli/doctor/checks.ts';
import type { Finding } from '../../../../cli/doctor/finding.ts';
import { KubeClient } from '../../../../core/kube/client.ts';
import type { AnswerTime } from '../../../../core/kube/server-clock.ts';
import type { KubeObject } from '../../../../core/kube/types.ts';
import { VERSION } from '../../../../core/program/version.ts';
import { admissionPolicies } from '../../../../core/resources/admission.ts';
import { customResourceDefinition, kinds } from '../../../../core/resources/crd.ts';
import { silentLogger, systemClock, systemRandom } from '../../../../core/system.ts';
import { answer, KubeServer, refuse } from '../../../support/kube-server.ts';

const SYSTEM = 'berth-system';
const DEPLOYMENTS = `/apis/apps/v1/namespaces/${SYSTEM}/deployments`;
const DAEMONSETS = '/apis/apps/v1/namespaces/kube-system/daemonsets';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases`;
const SECRETS = `/api/v1/namespaces/${SYSTEM}/secrets`;
const BERTH = '/apis/berth.dev/v1alpha1';
const SESSIONS = `${BERTH}/namespaces/team/sessions`;

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const object = (kind: string, name: string, rest: object): KubeObject =>
  ({ apiVersion: 'v1', kind, metadata: { name }, ...rest }) as KubeObject;
// biome-ignore lint/suspicious/noExplicitAny: a document that a test breaks
const stored = (server: KubeServer, path: string): any => structuredClone(server.objects.get(path));

/** Puts what a healthy installation has. */
function install(server: KubeServer): void {
  const deployment = (component: string, replicas: number): KubeObject => ({
    ...object('Deployment', `berth-${component}`, {
      spec: {
        replicas,
        template: { spec: { serviceAccountName: `berth-${component}`, containers: [{ name: component, env: [] }] } },
      },
      status: { readyReplicas: replicas, updatedReplicas: replicas },
    }),
    metadata: {
      name: `berth-${component}`,
      labels: {
        'app.kubernetes.io/component': component,
        'app.kubernetes.io/instance': 'berth',
        'app.kubernetes.io/version': VERSION,
      },
    },
  });
  server.put(DEPLOYMENTS, deployment('controller', 2));
  server.put(DEPLOYMENTS, deployment('api', 1));
  const containers = [{ name: 'node' }];
  const status = { desiredNumberScheduled: 3, numberReady: 3 };
  server.put(DAEMONSETS, object('DaemonSet', 'calico-node', { spec: { template: { spec: { containers } } }, status }));
  for (const kind of kinds) server.put(CRDS, JSON.parse(JSON.stringify(customResourceDefinition(kind))));
  const policies = admissionPolicies({
    nameOf: (of) => `berth-${of}.${SYSTEM}`,
    controller: `system:serviceaccount:${SYSTEM}:berth-controller`,
    api: `system:serviceaccount:${SYSTEM}:berth-api`,
    ...{ namespace: SYSTEM, masterKey: 'berth-master-key', lease: 'berth-controller' },
    ...{ meshContainers: '[]', meshTokenAudiences: '[]', cacheClaims: '[]' },
  }) as KubeObject[];
  for (const each of policies) server.put(each.kind === 'ValidatingAdmissionPolicy' ? POLICIES : BINDINGS, each);
  const spec = { holderIdentity: 'berth-controller-1', renewTime: ago(1), leaseDurationSeconds: 15 };
  server.put(LEASES, object('Lease', 'berth-controller', { spec }));
  server.put(SECRETS, object('Secret', 'berth-master-key', {}));
  server.put(`${BERTH}/sessionclasses`, object('SessionClass', 'default', { spec: { agent: { command: ['true'] } } }));
}

describe('the checks of an installation', () => {
  const server = new KubeServer();
  let allowed: (verb: string, resource: string) => boolean;
  let closed: string[];
  let clockOffsetMs: number;
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  beforeEach(() => {
    server.reset(100);
    install(server);
    allowed = () => true;
    closed = [];
    clockOffsetMs = 0;
    server.intercept = ({ path, body }, response) => {
      if (path === '/version') {
        answer(response, 200, { major: '1', minor: '35', gitVersion: 'v1.35.4' });
        return true;
      }
      if (path.endsWith('/selfsubjectaccessreviews')) {
        const { verb, resource } = JSON.parse(body).spec.resourceAttributes;
        answer(response, 201, { status: { allowed: allowed(verb, resource) } });
        return true;
      }
      if (closed.some((each) => path.includes(each))) {
        refuse(response, 403, 'Forbidden', `you may not read ${path}`);
        return true;
      }
      // The server of the tests takes a cluster's missing object for a list.
      if (path.startsWith(`${CRDS}/`) && !server.objects.has(path)) {
        refuse(response, 404, 'NotFound', `${path} not found`);
        return true;
      }
      return false;
    };
  });

  const check = async (): Promise<Finding[]> => {
    let last: AnswerTime | undefined;
    const clock = { ...systemClock, now: () => systemClock.now() + clockOffsetMs };
    clock.monotonic = () => systemClock.monotonic();
    clock.setTimer = (ms, fn) => systemClock.setTimer(ms, fn);
    const api = new KubeClient({
      connection: server.connection,
      clock,
      random: systemRandom,
      log: silentLogger,
      userAgent: 'test',
      onAnswer: (time) => {
        last = time;
      },
    });
    try {
      const cluster = { api, namespace: 'team', embedded: async () => false, answered: () => last };
      const cli = { name: 'berth', clock, interrupted: new AbortController().signal };
      return await checkCluster(cluster as unknown as KubeCluster, cli as unknown as Cli);
    } finally {
      await api.close();
    }
  };
  /** Findings that are not ok, as one line each. */
  const problems = async () =>
    (await check())
      .filter(({ level }) => level !== 'ok')
      .map(({ level, check, message, act }) => `${level} ${check}: ${message}${act ? ` -> ${act}` : ''}`);

  test('find nothing wrong with a healthy one', async () => {
    const found = await check();
    assert.deepEqual(
      found.filter(({ level }) => level !== 'ok'),
      [],
    );
    const names = ['cluster', 'clock', 'controller', 'controller', 'release', 'lease', 'crds', 'policies', 'network'];
    assert.deepEqual(
      found.map(({ check }) => check),
      [...names, 'master-key', 'store', 'rights', 'classes', 'pools', 'sessions'],
    );
  });

  const change = (path: string, by: (object: never) => void) => {
    const changed = stored(server, path);
    by(changed as never);
    server.put(path.slice(0, path.lastIndexOf('/')), changed);
  };
  type Any = { [key: string]: Any } & Any[];
  const POLICY = `${POLICIES}/berth-controller-pods.${SYSTEM}`;
  const cases: [what: string, breaks: () => void, expected: RegExp][] = [
    [
      'a controller that is scaled to 0',
      () =>
        change(`${DEPLOYMENTS}/berth-controller`, (deployment: Any) =>
          Object.assign(deployment.spec!, { replicas: 0 }),
        ),
      /^error controller: Deployment berth-system\/berth-controller is scaled to 0 -> kubectl scale deployment berth-controller/,
    ],
    [
      'an API without a ready pod',
      () =>
        change(`${DEPLOYMENTS}/berth-api`, (deployment: Any) =>
          Object.assign(deployment.status!, { readyReplicas: 0 }),
        ),
      /^error controller: Deployment berth-system\/berth-api has no ready pod of 1/,
    ],
    [
      'a Lease that nobody renews',
      () => change(`${LEASES}/berth-controller`, (lease: Any) => Object.assign(lease.spec!, { renewTime: ago(100) })),
      /^error lease: the Lease of berth-system\/berth was renewed (99|10\d) s ago, and lasts 15 s/,
    ],
    ['a CRD that is missing', () => server.remove(`${CRDS}/blobs.berth.dev`), /^error crds: blobs.berth.dev: missing/],
    [
      'a CRD of another release, by the fields that differ',
      () =>
        change(`${CRDS}/sessions.berth.dev`, (crd: Any) => {
          const { properties } = crd.spec!.versions![0]!.schema!.openAPIV3Schema!.properties!.spec!;
          delete (properties as Record<string, unknown>).parent;
          (properties as Record<string, unknown>).old = { type: 'string' };
        }),
      /^error crds: sessions.berth.dev is not that of release \S+: spec.parent is missing, spec.old is not of this release/,
    ],
    ['a policy that is missing', () => server.remove(POLICY), /^error policies: .*berth-controller-pods\S+ is missing/],
    [
      'a policy without its binding',
      () => server.remove(`${BINDINGS}/berth-controller-pods.${SYSTEM}`),
      /^error policies: .*berth-controller-pods\S+ has no binding: it is not in force/,
    ],
    [
      'a policy that only audits',
      () =>
        change(`${BINDINGS}/berth-requester.${SYSTEM}`, (binding: Any) =>
          Object.assign(binding.spec!, { validationActions: ['Audit'] }),
        ),
      /^error policies: .*berth-requester\S+ does not deny: Audit/,
    ],
    [
      'a policy with another expression',
      () => change(POLICY, (policy: Any) => Object.assign(policy.spec!.validations![0]!, { expression: 'true' })),
      /^error policies: .*berth-controller-pods\S+ is not that of release/,
    ],
    [
      'a warning of the API server about an expression',
      () =>
        change(POLICY, (policy: Any) => {
          const expressionWarnings = [{ fieldRef: 'spec.validations[0].expression', warning: 'no such key: a\nmore' }];
          Object.assign(policy, { status: { typeChecking: { expressionWarnings } } });
        }),
      /^warning policies: .*the API server warns of spec.validations\[0\].expression: no such key: a ->/,
    ],
    [
      'a network plugin that is not known',
      () => server.remove(`${DAEMONSETS}/calico-node`),
      /^warning network: it is unknown whether NetworkPolicies are enforced/,
    ],
    [
      'flannel alone',
      () => {
        const flannel = stored(server, `${DAEMONSETS}/calico-node`);
        server.remove(`${DAEMONSETS}/calico-node`);
        server.put(DAEMONSETS, { ...flannel, metadata: { name: 'kube-flannel-ds' } });
      },
      /^error network: flannel runs, and no known plugin/,
    ],
    [
      'a plugin that is not ready on all nodes',
      () => change(`${DAEMONSETS}/calico-node`, (set: Any) => Object.assign(set.status!, { numberReady: 2 })),
      /^warning network: Calico enforces .* ready on 2 of 3 nodes/,
    ],
    [
      'a master key that is gone',
      () => server.remove(`${SECRETS}/berth-master-key`),
      /^error master-key: the Secret berth-system\/berth-master-key is missing/,
    ],
    [
      'a store that is nearly full, with the namespace that holds the most',
      () => {
        const annotations = { 'berth.dev/blob-bytes': String(250 * 2 ** 20) };
        server.put(`${BERTH}/namespaces/greedy/blobs`, {
          ...object('Blob', 'b', {}),
          metadata: { name: 'b', annotations },
        });
      },
      /^error store: the store holds 250.0 MiB of 256.0 MiB \(97%\); namespace greedy holds the most, 250.0 MiB/,
    ],
    [
      'a class that is not valid',
      () => server.put(`${BERTH}/sessionclasses`, object('SessionClass', 'bad', { spec: { runner: 'Magic' } })),
      /^error classes: SessionClass bad: spec.runner: /,
    ],
    [
      'a pool that is not full',
      () => {
        const conditions = [{ type: 'Ready', status: 'False', reason: 'AtCapacity', message: 'No slot.' }];
        server.put(`${BERTH}/namespaces/team/sessionpools`, object('SessionPool', 'warm', { status: { conditions } }));
      },
      /^warning pools: SessionPool team\/warm: AtCapacity: No slot\./,
    ],
    [
      'sessions that do not start, by the reason',
      () => {
        const startFailures = { reason: 'ImageUnavailable', count: 3 };
        for (const name of ['a', 'b']) {
          server.put(SESSIONS, object('Session', name, { spec: {}, status: { conditions: [], startFailures } }));
        }
      },
      /^warning sessions: 2 sessions are stuck, ImageUnavailable: team\/a, team\/b -> berth why a --namespace team/,
    ],
    [
      'sessions that no controller has seen',
      () =>
        server.put(SESSIONS, {
          ...object('Session', 'a', { spec: {} }),
          metadata: { name: 'a', creationTimestamp: ago(90) },
        }),
      /^error sessions: 1 session is stuck, no controller has seen it: team\/a/,
    ],
    [
      'a session that has waited long for a slot',
      () => {
        const queue = { reason: 'AtCapacity', since: ago(1000) };
        server.put(SESSIONS, object('Session', 'a', { spec: {}, status: { conditions: [], queue } }));
      },
      /^warning sessions: 1 session is stuck, AtCapacity for more than 15m: team\/a/,
    ],
    [
      'a right that the caller lacks, with the role that has it',
      () => {
        allowed = (_, resource) => resource !== 'approvals';
      },
      /^warning rights: in namespace team you may not decide on approvals: create approvals -> .*berth-approve/,
    ],
    [
      'a clock of this machine that is ahead',
      () => {
        clockOffsetMs = 60_000;
      },
      /^warning clock: the clock of this machine is (59|60) s ahead of that of the API server/,
    ],
  ];
  for (const [what, breaks, expected] of cases) {
    test(`name ${what}, and nothing else`, async () => {
      breaks();
      const [found = '', ...others] = await problems();
      assert.match(found, expected);
      assert.deepEqual(others, []);
    });
  }

  test('say that a release without policies has none, once', async () => {
    for (const path of [...server.objects.keys()].filter((path) => path.includes('validatingadmission')))
      server.remove(path);
    assert.match((await problems()).join('\n'), /^warning policies: berth-system\/berth has no admission policies.*$/);
  });

  test('do not compare CRDs and policies of another release', async () => {
    change(`${DEPLOYMENTS}/berth-controller`, (deployment: Any) => {
      Object.assign(deployment.metadata!.labels!, { 'app.kubernetes.io/version': '0.0.1' });
    });
    change(POLICY, (policy: Any) => Object.assign(policy.spec!.validations![0]!, { expression: 'true' }));
    const found = await problems();
    assert.equal(found.length, 2, found.join('\n'));
    assert.match(
      found.join('\n'),
      /^warning release: .* is 0\.0\.1, this program is .*\nwarning crds: .* not compared/,
    );
  });

  test('take CRDs of a later release, which stay after a rollback', async () => {
    for (const each of kinds) {
      change(`${CRDS}/${each.plural}.berth.dev`, (crd: Any) => {
        Object.assign(crd.metadata!, { annotations: { 'berth.dev/release': '99.0.0' } });
        Object.assign(crd.spec!.versions![0]!.schema!.openAPIV3Schema!, { description: 'Another one.' });
      });
    }
    assert.deepEqual(await problems(), []);
    const crds = (await check()).find(({ check }) => check === 'crds');
    assert.match(crds?.message ?? '', /they are of release 99\.0\.0, which \S+ can use/);
  });

  test('skip what the caller may not see, and name the right', async () => {
    closed = [
      '/deployments',
      '/daemonsets',
      '/customresourcedefinitions',
      '/blobs',
      '/apis/berth.dev/v1alpha1/sessions',
    ];
    const found = await problems();
    for (const right of [
      'skipped controller: you may not list deployments.apps in all namespaces',
      'skipped crds: you may not get customresourcedefinitions.apiextensions.k8s.io',
      'skipped network: you may not list daemonsets.apps in all namespaces',
    ]) {
      assert.ok(found.includes(right), found.join('\n'));
    }
    assert.ok(
      found.every((line) => line.startsWith('skipped ')),
      found.join('\n'),
    );
  });

  test('say that no controller is installed where none is, and judge what does not depend on one', async () => {
    for (const name of ['controller', 'api']) server.remove(`${DEPLOYMENTS}/berth-${name}`);
    const found = await problems();
    assert.match(found[0] ?? '', /^error controller: no controller of Berth is installed/);
    assert.equal(found.filter((line) => line.startsWith('error')).length, 1, found.join('\n'));
  });
});
