import { afterAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  type Any,
  apply,
  controllerPods,
  ended,
  get,
  kubectl,
  makeNamespace,
  release,
  releaseNamespace,
  session,
  until,
} from '../support/cluster.ts';
import { runnerImage } from '../support/images.ts';
import { install } from '../support/release.ts';

const NODE = '/usr/local/bin/node';
/** Answers on port 8080. */
const SERVE = "require('node:http').createServer((_, answer) => answer.end('web')).listen(8080)";

/** Starts a pod that serves, and from which others are asked; resolves with its address. */
async function web(namespace: string): Promise<string> {
  await apply({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: 'web' },
    spec: {
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...{ name: 'web', image: runnerImage, imagePullPolicy: 'Never', command: [NODE, '-e', SERVE] },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  });
  const { status } = await until(namespace, 'pod', 'web', ({ status }) => status.podIP && status.phase === 'Running');
  return status.podIP;
}

/** A pod that asks, and what it asks. */
interface Way {
  namespace: string;
  pod: string;
  url: string;
}

/** Resolves once the way is open, by an answer of any status, or closed; policies take effect a moment after they are written. */
async function becomes(what: 'open' | 'closed', { namespace, pod, url }: Way): Promise<void> {
  const script = `fetch('${url}', { signal: AbortSignal.timeout(3000) }).then(() => console.log('open'), () => console.log('closed'))`;
  const ask = async () => (await kubectl(['exec', pod, '-n', namespace, '--', NODE, '-e', script])).trim() === what;
  await eventually(ask, { timeoutMs: 120_000, what: `${url} is ${what} for ${namespace}/${pod}` });
}

describe('NetworkPolicies of the chart', () => {
  afterAll(() => install());

  test('keep all but the callers from the API, all from the controller, and both from all but the API server, and Berth works', async (t) => {
    const [apps, others] = [await makeNamespace(t), await makeNamespace(t)];
    const [, address] = await Promise.all([web(apps), web(others)]);
    const [controller] = await controllerPods();
    const { items } = await get(['pods', '-n', releaseNamespace, '-l', 'app.kubernetes.io/component=api']);
    const api = `http://${release}-api.${releaseNamespace}.svc/readyz`;
    const health = `http://${controller.status.podIP}:8081/readyz`;
    const from = (namespace: string, url: string) => ({ namespace, pod: 'web', url });
    const out = { namespace: releaseNamespace, pod: items[0].metadata.name, url: `http://${address}:8080/` };
    for (const way of [from(apps, api), from(others, api), from(others, health), out]) await becomes('open', way);

    const service = await get(['service', 'kubernetes', '-n', 'default']);
    const slices = await get(['endpointslices', '-n', 'default', '-l', 'kubernetes.io/service-name=kubernetes']);
    const behind = slices.items.flatMap(({ endpoints, ports }: Any) =>
      endpoints.map(({ addresses }: Any) => ({ cidr: `${addresses[0]}/32`, port: ports[0].port })),
    );
    const apiServer = [{ cidr: `${service.spec.clusterIP}/32`, port: service.spec.ports[0].port }, ...behind];
    const callers = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': apps } } }];
    await install({ networkPolicies: { enabled: true, api: { from: callers }, apiServer } });
    for (const way of [from(others, api), from(others, health), from(apps, health), out]) await becomes('closed', way);
    await becomes('open', from(apps, api));

    await apply(session(others, 'one', { turns: 'One', input: 'hello' }));
    const { status } = await ended(others, 'one');
    if (status.phase !== 'Succeeded') throw new Error(JSON.stringify(status));
    // Its probes come from the node.
    await until(releaseNamespace, 'pod', items[0].metadata.name, ({ status }) =>
      status.conditions.some(({ type, status }: Any) => type === 'Ready' && status === 'True'),
    );
  });
});
