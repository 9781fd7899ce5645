/**
 * All figures, those of a real cluster first: `make bench`, which sets KUBECONFIG and installs the chart. Prints Markdown;
 * build/bench.json has every value.
 */
import type { Pod } from '../../core/kube/builtin.ts';
import { namespaces, pods } from '../../core/kube/resources.ts';
import { type Session, sessions, type Turn, turns } from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import { compared, durations, MIB, publish } from './figures.ts';
import { injectionFigure } from './injection.ts';
import { pythonOnKind } from './python-kind.ts';
import { runnerFigures } from './runner.ts';

const COLD = 15;
const TURNS = 100;

const namespace = `bench-${process.pid}`;
const cluster = await BenchCluster.connect(namespace);
const { client } = cluster;
await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });

const AGENT = { command: ['sh', '-c', 'cat'], input: 'Text', result: 'Text' };
const session = (name: string, spec: object) =>
  ({
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Session',
    metadata: { namespace, name },
    spec: { agent: AGENT, ...spec },
  }) as unknown as Session;
const ended = (object: Turn) => isTerminal(object.status?.phase);
const must = (object: Turn) => {
  if (object.status?.phase !== 'Succeeded')
    throw new Error(`turn ${object.metadata.name}: ${JSON.stringify(object.status)}`);
};

/** A pod of the same image and resources that does nothing. */
function barePod(name: string, image: string): Pod {
  const resources = { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '1Gi' } };
  const container = {
    name: 'bare',
    image,
    imagePullPolicy: 'IfNotPresent' as const,
    command: ['sh', '-c', 'sleep 3600'],
    resources,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [container],
    },
  };
}
const isReady = (pod: Pod) =>
  Boolean(pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'));

async function podOf(name: string) {
  const { items } = await client.list(pods, { namespace, labelSelector: `${LABEL_SESSION}=${name}` });
  if (!items[0]) throw new Error(`session ${name} has no pod`);
  return items[0];
}

try {
  // The first one warms caches on every side and tells the image.
  const warm = await client.create(sessions, session('warm', {}));
  await cluster.timed(turns, 'warm-1', () => client.create(turns, newTurn(warm, 'warm-1', 'x')), ended);
  const image = (await podOf('warm')).spec.containers[0]?.image as string;

  const bare: number[] = [];
  const cold: number[] = [];
  for (let i = 0; i < COLD; i++) {
    bare.push(
      (await cluster.timed(pods, `bare-${i}`, () => client.create(pods, barePod(`bare-${i}`, image)), isReady)).ms,
    );
    await client.delete(pods, { namespace, name: `bare-${i}` }, { gracePeriodSeconds: 0 });
    const name = `cold-${i}`;
    const spec = { turns: 'One', input: 'x' };
    const { ms, object } = await cluster.timed(turns, name, () => client.create(sessions, session(name, spec)), ended);
    must(object);
    cold.push(ms);
    await client.delete(sessions, { namespace, name });
  }

  const before = await cluster.writes();
  const trips: number[] = [];
  for (let i = 0; i < TURNS; i++) {
    const { ms, object } = await cluster.timed(
      turns,
      `trip-${i}`,
      () => client.create(turns, newTurn(warm, `trip-${i}`, 'x')),
      ended,
    );
    must(object);
    trips.push(ms);
  }
  const after = await cluster.writes();
  const writes = [...after]
    .map(([what, count]) => [what, (count - (before.get(what) ?? 0)) / TURNS] as const)
    .filter(([what, count]) => /turns|sessions|blobs|pods|events/.test(what) && count > 0.05);

  const [controller] = (await client.list(pods, { labelSelector: 'app.kubernetes.io/component=controller' })).items;
  const memories: [string, number | undefined][] = [
    ['controller', controller && (await cluster.memory(controller, 'controller'))],
    ['runner with its keeper', await cluster.memory(await podOf('warm'), 'session')],
  ];

  await client.delete(sessions, { namespace, name: 'warm' });

  const own = writes.filter(([what]) => what !== 'POST turns');
  const perTurn = own.reduce((sum, [, count]) => sum + count, 0);
  publish('bench', [
    compared('cold session, create → first turn’s result durable and seen', cold, {
      what: 'a pod of the same image, create → Ready seen',
      values: bare,
    }),
    {
      what: 'turn on a ready session, create → result durable and seen',
      measured: durations(trips),
      values: trips,
    },
    {
      what: 'API writes of a turn on a ready session, beside its creation',
      measured: `${perTurn.toFixed(2)}: ${own.map(([what, count]) => `${count.toFixed(2)} ${what}`).join(', ')}`,
      values: Object.fromEntries(writes),
    },
    ...memories.map(([what, bytes]) => ({
      what: `${what}, resident`,
      measured: bytes === undefined ? 'not known' : `${(bytes / MIB).toFixed(1)} MiB`,
      values: bytes,
    })),
    await injectionFigure(cluster),
    ...(await pythonOnKind(namespace)),
    ...(await runnerFigures()),
  ]);
} finally {
  await client.delete(namespaces, { name: namespace });
  await client.close();
}
