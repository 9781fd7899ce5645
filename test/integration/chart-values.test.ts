import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { apiConfig } from '../../api/config.ts';
import { controllerConfig } from '../../controller/config.ts';
import { parseConfig } from '../../core/program/config.ts';
import { classForms } from '../../scripts/values-schema.ts';
import { type Any, find, render } from '../support/chart.ts';

interface Wrong {
  /** Values as for `--set`. */
  set: string[];
  /** Parts of the message: the path of the value, and what to do. */
  says: string[];
  /** The same mistake in the environment of a program, which its start refuses by the variable's name. */
  env?: [name: string, value: string];
}

const LABEL = 'must be a DNS label of at most 63 characters';
const NAME = 'must be a DNS name';
const HOST = 'must be a host name without scheme, port and path, for example berth.example.com';
const QUANTITY = 'must be a Kubernetes quantity, for example 500m, 2 or 512Mi';
const POOLS = ['pools[0].namespace=a', 'pools[1].namespace=a'];

/** Each row is refused by itself; its name is the mistake. */
const WRONG: Record<string, Wrong> = {
  // Fields and types.
  'a field that does not exist': { set: ['replicas=2'], says: ["additional properties 'replicas' not allowed"] },
  'a field that does not exist, further below': {
    set: ['api.limits.wait=3'],
    says: ["'/api/limits'", "additional properties 'wait' not allowed"],
  },
  'a text for a number': {
    set: ['controller.maxRunning=many'],
    says: ["'/controller/maxRunning'", 'got string, want null or integer'],
  },
  'a text for a switch': { set: ['api.enabled=perhaps'], says: ["'/api/enabled'", 'got string, want boolean'] },
  'a list that is none': { set: ['namespaces=team-a'], says: ["'/namespaces'", 'got string, want array'] },
  'a word that is not among those allowed': {
    set: ['image.pullPolicy=Sometimes'],
    says: ["'/image/pullPolicy'", "must be one of 'Always', 'IfNotPresent', 'Never'"],
  },
  'a level of logs that does not exist': {
    set: ['controller.logLevel=loud'],
    says: ["'/controller/logLevel'", "'debug', 'info', 'warn', 'error'"],
    env: ['BERTH_LOG_LEVEL', 'loud'],
  },
  'a negative number': {
    set: ['controller.maxRunning=-1'],
    says: ["'/controller/maxRunning'", 'minimum: got -1, want 0'],
    env: ['BERTH_MAX_RUNNING', '-1'],
  },
  'a store that holds nothing': {
    set: ['controller.storeCeilingBytes=0'],
    says: ["'/controller/storeCeilingBytes'", 'minimum: got 0, want 1'],
    env: ['BERTH_STORE_CEILING_BYTES', '0'],
  },
  'shares that hold nothing': {
    set: ['controller.storeShareFactor=0'],
    says: ["'/controller/storeShareFactor'", 'exclusiveMinimum: got 0, want 0'],
    env: ['BERTH_STORE_SHARE_FACTOR', '0'],
  },
  'no requests at all': {
    set: ['api.limits.requests=0'],
    says: ["'/api/limits/requests'", 'minimum: got 0, want 1'],
    env: ['BERTH_API_MAX_REQUESTS', '0'],
  },
  'a share of more than everything': {
    set: ['api.limits.callerShare=101'],
    says: ["'/api/limits/callerShare'", 'maximum: got 101, want 100'],
    env: ['BERTH_API_CALLER_SHARE', '101'],
  },
  'a port that does not exist': {
    set: ['api.service.port=70000'],
    says: ["'/api/service/port'", 'maximum: got 70,000, want 65,535'],
  },
  'no audience': {
    set: ['api.audiences=null'],
    says: ['api.audiences: is empty; name at least one audience, for example berth'],
    env: ['BERTH_AUDIENCES', ' , '],
  },
  'a namespace twice': { set: ['namespaces={a,a}'], says: ["'/namespaces'", 'items at 0 and 1 are equal'] },
  'a pool of a negative size': {
    set: ['pools[0].namespace=a', 'pools[0].replicas=-1'],
    says: ["'/pools/0/replicas'", 'minimum: got -1, want 0'],
  },
  'a pool without a namespace': { set: ['pools[0].class=x'], says: ["'/pools/0'", "missing property 'namespace'"] },
  'a toleration with a typing error': {
    set: ['controller.tolerations[0].key=a', 'controller.tolerations[0].effect=NoScheduling'],
    says: ["'/controller/tolerations/0/effect'", "'NoSchedule', 'PreferNoSchedule', 'NoExecute'"],
  },
  'an affinity with a typing error': {
    set: ['api.affinity.podAntiAfinity.x=1'],
    says: ["'/api/affinity'", "additional properties 'podAntiAfinity' not allowed"],
  },
  // The spec of a class.
  'a field of a class that does not exist': {
    set: ['defaultClass.spec.timeouts.idel=1h'],
    says: ["'/defaultClass/spec/timeouts'", "additional properties 'idel' not allowed"],
  },
  'an amount of a class that is none': {
    set: ['defaultClass.spec.resources.limits.memory=lots'],
    says: [`defaultClass.spec.resources.limits.memory: "lots" ${QUANTITY}`],
  },
  'a duration of a class that is none': {
    set: ['pythonClass.spec.timeouts.turn=soon'],
    says: ['pythonClass.spec.timeouts.turn: "soon" must be a duration, for example 90s, 30m or 1h30m'],
  },
  'a word of a class that is not among those allowed': {
    set: ['defaultClass.spec.runner=Injekted'],
    says: ["'/defaultClass/spec/runner'", "must be one of 'Embedded', 'Injected', 'None'"],
  },
  'an override of a class that does not exist': {
    set: ['defaultClass.spec.overrides={imag}'],
    says: ["'/defaultClass/spec/overrides/0'", "'image'"],
  },
  // The form of texts.
  'a registry with a scheme': {
    set: ['image.registry=https://registry.example.com'],
    says: ['image.registry: "https://registry.example.com"', 'without a scheme such as https://'],
  },
  'a repository with a tag': {
    set: ['runner.image.repository=berth/runner:latest'],
    says: ['runner.image.repository: "berth/runner:latest"', 'without a tag'],
  },
  'a tag with a space': { set: ['image.tag=0.1 0'], says: ['image.tag: "0.1 0" must be the tag of an image'] },
  'a digest that is cut': {
    set: ['api.image.digest=sha256:abc'],
    says: ['api.image.digest: "sha256:abc" must be sha256: and 64 hex digits'],
  },
  'a duration without a unit': {
    set: ['controller.nodeGrace=soon'],
    says: ['controller.nodeGrace: "soon" must be a duration, for example 90s, 30m or 1h30m'],
    env: ['BERTH_NODE_GRACE', 'soon'],
  },
  'no patience with a node': {
    set: ['controller.nodeGrace=0s'],
    says: ['controller.nodeGrace: "0s" is too short', 'set at least 1s'],
    env: ['BERTH_NODE_GRACE', '0s'],
  },
  'no patience with a client': {
    set: ['api.limits.stallTimeout=0.5s'],
    says: ['api.limits.stallTimeout: "0.5s" is too short', 'set at least 1s'],
    env: ['BERTH_API_STALL_TIMEOUT', '0.5s'],
  },
  'an interval that Prometheus does not know': {
    set: ['metrics.podMonitor.interval=0.5m'],
    says: ['metrics.podMonitor.interval: "0.5m" must be a duration as Prometheus writes it'],
  },
  'bytes with a unit that does not exist': {
    set: ['api.limits.bytes=96MB'],
    says: ['api.limits.bytes: "96MB" must be a number of bytes, for example 96Mi'],
    env: ['BERTH_API_MAX_BYTES', '96MB'],
  },
  'fewer bytes than an artifact may have': {
    set: ['api.limits.bytes=1Mi'],
    says: ['api.limits.bytes: 1Mi', 'set at least 16Mi'],
    env: ['BERTH_API_MAX_BYTES', '1Mi'],
  },
  'an amount that is none': {
    set: ['controller.resources.limits.memory=lots'],
    says: [`controller.resources.limits.memory: "lots" ${QUANTITY}`],
  },
  'a resource that does not exist': {
    set: ['api.resources.requests.cpus=1'],
    says: ['api.resources.requests: "cpus" must be a resource of Kubernetes: cpu, memory'],
  },
  'a namespace that can have no such name': { set: ['namespaces={Team}'], says: [`namespaces[0]: "Team" ${LABEL}`] },
  'a name of a class that is none': {
    set: ['defaultClass.name=My_class'],
    says: [`defaultClass.name: "My_class" ${NAME}`],
  },
  'a name of a pool that is none': {
    set: ['pools[0].namespace=a', 'pools[0].name=a.b'],
    says: [`pools[0].name: "a.b" ${LABEL}`],
  },
  'a host with a scheme': {
    set: ['api.ingress.host=https://berth.example.com'],
    says: [`api.ingress.host: "https://berth.example.com" ${HOST}`],
  },
  'a host with a port': {
    set: ['api.httpRoute.hostnames={berth.example.com:443}'],
    says: [`api.httpRoute.hostnames[0]: "berth.example.com:443" ${HOST}`],
  },
  'a Secret that can have no such name': {
    set: ['api.tls.secretName=API_TLS'],
    says: [`api.tls.secretName: "API_TLS" ${NAME}`],
  },
  'two audiences in one': {
    set: ['api.audiences[0]=a\\,b'],
    says: ['api.audiences[0]: "a,b" must be an audience without commas'],
  },
  'a label that can have no such value': {
    set: ['metrics.podMonitor.labels.release=my stack'],
    says: ['metrics.podMonitor.labels.release: "my stack" must be the value of a label'],
  },
  'an annotation that can have no such name': {
    set: ['api.podAnnotations.my key=x'],
    says: ['api.podAnnotations: "my key" must be a name as labels and annotations have it'],
  },
  // Combinations.
  'a pool outside the namespaces served': {
    set: ['namespaces={a,b}', 'pools[0].namespace=c'],
    says: ['pools[0].namespace: "c" is not served, because namespaces lists a, b only; add it there'],
  },
  'a test outside the namespaces served': {
    set: ['namespaces={a}', 'test.namespace=c'],
    says: ['test.namespace: "c" is not served, because namespaces lists a only; name one of these'],
  },
  'a test in the namespace of the release': {
    set: ['test.namespace=berth-system'],
    says: ['test.namespace: "berth-system" is the namespace of this release', 'name another one'],
  },
  'a lease that cannot be renewed': {
    set: ['controller.leaseDuration=10ms'],
    says: ['controller.leaseDuration: "10ms" is too short', 'set at least 1s'],
    env: ['BERTH_LEASE_DURATION', '10ms'],
  },
  'no time between sweeps': {
    set: ['controller.garbageInterval=0s'],
    says: ['controller.garbageInterval: "0s" is no time; set for example 1m'],
    env: ['BERTH_GARBAGE_INTERVAL', '0s'],
  },
  'an address that is a name': {
    set: ['api.host=localhost'],
    says: ['api.host: "localhost" must be an IP address, for example 0.0.0.0, or empty for all'],
  },
  'a service account that can have no such name': {
    set: ['controller.serviceAccount.name=Berth'],
    says: [`controller.serviceAccount.name: "Berth" ${NAME}`],
  },
  'a label of everything that can have no such value': {
    set: ['commonLabels.team=a b'],
    says: ['commonLabels.team: "a b" must be the value of a label'],
  },
  'a setting of Berth among the variables of one’s own': {
    set: ['controller.extraEnv[0].name=BERTH_WORKERS', 'controller.extraEnv[0].value=x'],
    says: ['controller.extraEnv: BERTH_WORKERS is a setting of Berth; set the value of the chart for it'],
  },
  'an account that nobody makes': {
    set: ['api.serviceAccount.create=false'],
    says: ['api.serviceAccount.create is false, but api.serviceAccount.name is empty; name the service account'],
  },
  'no time for the test': {
    set: ['test.timeout=0s'],
    says: ['test.timeout: "0s" is too short for a session; set at least 1s'],
  },
  'a quota outside the namespaces served': {
    set: ['namespaces={a}', 'quotas[0].namespace=c', 'quotas[0].turns=1'],
    says: ['quotas[0].namespace: "c" is not served, because namespaces lists a only; add it there'],
  },
  'two pools of one name': {
    set: POOLS,
    says: ['pools[1]: pools[0] has this namespace and the name "default", too; give one of them another name'],
  },
  'two quotas of one namespace': {
    set: ['quotas[0].namespace=a', 'quotas[0].turns=1', 'quotas[1].namespace=a', 'quotas[1].sessions=1'],
    says: ['quotas[1].namespace: quotas[0] is for "a", too; write one entry for each namespace'],
  },
  'a quota that limits nothing': { set: ['quotas[0].namespace=a'], says: ['quotas[0]: limits nothing; set'] },
  'a quota of more bytes than the store has': {
    set: ['quotas[0].namespace=a', 'quotas[0].storeBytes=300000000'],
    says: [
      'quotas[0].storeBytes: 300000000 is more than controller.storeCeilingBytes',
      'lower the one or raise the other',
    ],
  },
  'a quota of no bytes': {
    set: ['quotas[0].namespace=a', 'quotas[0].storeBytes=0'],
    says: ["'/quotas/0/storeBytes'", 'minimum: got 0, want 1'],
    env: ['BERTH_STORE_QUOTAS', 'a=0'],
  },
  'pools that nobody keeps': {
    set: ['pools[0].namespace=a', 'controller.sessionPools=false'],
    says: ['pools: controller.sessionPools is false', 'set it to true, or remove the entries'],
  },
  'two classes of one name': {
    set: ['pythonClass.name=default'],
    says: ['pythonClass.name: defaultClass.name is "default", too; give one of them another name'],
  },
  'a request above its limit': {
    set: ['controller.resources.requests.memory=2Gi'],
    says: ['controller.resources.requests.memory: 2Gi is more than limits.memory, which is 1Gi; lower the request'],
  },
  'more bytes than the memory of the API holds': {
    set: ['api.limits.bytes=250Mi'],
    says: ['api.resources.limits.memory: 512Mi is too little for api.limits.bytes, 250Mi', 'raise the one'],
  },
  'a way into sessions without the policy that narrows it': {
    set: ['api.enter.enabled=true', 'admissionPolicies.enabled=false'],
    says: ['api.enter.enabled needs admissionPolicies.enabled'],
  },
  'tokens in plain text': {
    set: ['api.service.type=LoadBalancer'],
    says: ['api.service.type is LoadBalancer, but the API has no TLS', 'Set api.tls.secretName'],
  },
  'an Ingress without a host': {
    set: ['api.ingress.enabled=true'],
    says: ['api.ingress.enabled is true, but api.ingress.host is empty; set the host name'],
  },
  'a route without a Gateway': {
    set: ['api.httpRoute.enabled=true'],
    says: ['api.httpRoute.enabled is true, but api.httpRoute.parentRefs is empty; name the Gateway'],
  },
};

/** Values that look odd and are right. */
const RIGHT: Record<string, string[]> = {
  'a pool of a class that the chart does not create': ['pools[0].namespace=a', 'pools[0].class=gpu.large'],
  'two pools of one namespace with two names': [...POOLS, 'pools[1].name=second'],
  'one name of pools in two namespaces': ['pools[0].namespace=a', 'pools[1].namespace=b'],
  'a registry with a port and a path': ['image.registry=localhost:5000/team/berth/'],
  'amounts as numbers': ['controller.resources.requests.cpu=1', 'controller.resources.limits.memory=2000000000'],
  'an amount without a limit beside it': ['controller.resources.requests.cpu=16'],
  'durations with fractions and several units': ['controller.nodeGrace=1m30.5s', 'api.limits.stallTimeout=0.5m'],
  'no limit of the installation': ['controller.maxRunning=null'],
  'everything of an extended resource': ['api.resources.limits.example\\.com/gpu=1'],
  'addresses of both families': ['api.host=0.0.0.0', 'controller.healthHost=::'],
  'a wildcard': ['api.httpRoute.hostnames={*.example.com}'],
};

describe('values of the chart', () => {
  for (const [mistake, { set, says }] of Object.entries(WRONG)) {
    test(`are refused with their path and what to do: ${mistake}`, async () => {
      await assert.rejects(render(...set), (error: Error) => {
        for (const part of says) assert.ok(error.message.includes(part), `${part}\n— is not in —\n${error.message}`);
        return true;
      });
    });
  }

  for (const [what, set] of Object.entries(RIGHT)) {
    test(`are taken: ${what}`, async () => {
      await render(...set);
    });
  }

  test('are refused with all mistakes at once', async () => {
    await assert.rejects(
      render('image.registry=https://a', 'controller.nodeGrace=x', 'namespaces={B}'),
      (error: Error) =>
        ['image.registry', 'controller.nodeGrace', 'namespaces[0]'].every((path) =>
          error.message.includes(`- ${path}: `),
        ),
    );
  });

  test('are refused in every duration and quantity of a class', async () => {
    const [json = '{}'] = /^\{$.*^\}$/ms.exec(classForms('')) ?? [];
    const paths = Object.keys(JSON.parse(json)).map((path) => `defaultClass.spec.${path}`);
    assert.ok(paths.length > 30);
    const set = (value: string) => render(...paths.map((path) => `${path}=${value}`));
    await assert.rejects(set('a lot'), ({ message }: Error) => {
      assert.deepEqual(
        paths.filter((path) => !message.includes(`- ${path}: "a lot" must be a `)),
        [],
      );
      return true;
    });
    await assert.rejects(set(''), ({ message }: Error) => {
      const pointers = paths.map((path) => `'/${path.replaceAll('.', '/')}': minLength`);
      assert.deepEqual(
        pointers.filter((pointer) => !message.includes(pointer)),
        [],
      );
      return true;
    });
  });

  test('are refused with their mistakes before anything else of the chart refuses them', async () => {
    const values = [
      'image.registry=',
      'controller.nodeGrace=0s',
      'api.service.type=NodePort',
      'api.ingress.enabled=true',
    ];
    await assert.rejects(render(...values), (error: Error) =>
      ['- image.registry is empty', '- controller.nodeGrace: '].every((part) => error.message.includes(part)),
    );
  });

  test('that are refused would be refused by the programs at their start, too, by the name of the variable', async () => {
    const objects = await render();
    const environment = (name: string) => {
      const [{ env }] = find(objects, 'Deployment', name).spec.template.spec.containers;
      return Object.fromEntries(env.map(({ name, value }: Any) => [name, value]));
    };
    const programs = [
      [apiConfig, environment('berth-api')],
      [controllerConfig, environment('berth-controller')],
    ] as const;
    for (const [mistake, { env }] of Object.entries(WRONG)) {
      if (!env) continue;
      const [name, value] = env;
      const [schema, present] = programs.find(([, present]) => name in present) ?? programs[1];
      parseConfig(schema, present);
      assert.throws(() => parseConfig(schema, { ...present, [name]: value }), new RegExp(`${name}: "`), mistake);
    }
  });
});
