/**
 * Figures on a real cluster, beside a bare pod in the same run: `node test/bench/bench.ts`, with KUBECONFIG set and the
 * chart installed. Prints Markdown; build/bench.json has every value.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../core/kube/builtin.ts';
import { namespaces, pods } from '../../core/kube/resources.ts';
import { ownedBy, type Session, type StoredSession, sessions, type Turn, turns } from '../../core/resources/kinds.ts';
import { LABEL_SESSION } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn.ts';
import { BenchCluster } from './cluster.ts';
import { HEADER, percentile, row, type Series } from './figures.ts';

const COLD = 15;
const TURNS = 100;
const MIB = 1024 * 1024;

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
/** As the CLI and the HTTP API make it: with its owner. */
const turn = (name: string, of: StoredSession) =>
  ({
    apiVersion: 'berth.dev/v1alpha1',
    kind: 'Turn',
    metadata: { namespace, name, ownerReferences: [ownedBy(of)] },
    spec: { session: of.metadata.name, input: 'x' },
  }) as unknown as Turn;
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
  await cluster.timed(turns, 'warm-1', () => client.create(turns, turn('warm-1', warm)), ended);
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
      () => client.create(turns, turn(`trip-${i}`, warm)),
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
    ['controller, resident', controller && (await cluster.memory(controller, 'controller'))],
    ['runner with its keeper, resident', await cluster.memory(await podOf('warm'), 'session')],
  ];

  const series: Series[] = [
    { name: 'bare pod of the same image, create → Ready seen', unit: 'ms', values: bare },
    { name: 'cold session, create → first turn’s result durable and seen', unit: 'ms', values: cold },
    { name: 'turn on a ready session, create → result durable and seen', unit: 'ms', values: trips },
  ];
  const ratio = percentile(cold, 0.5) / percentile(bare, 0.5);
  console.log([...HEADER, ...series.map(row)].join('\n'));
  console.log(`\ncold session over bare pod, p50: ${ratio.toFixed(2)}`);
  const own = writes.filter(([what]) => what !== 'POST turns');
  console.log(`API writes per turn beside its creation: ${own.reduce((sum, [, count]) => sum + count, 0).toFixed(2)}`);
  for (const [what, count] of own) console.log(`  ${what}: ${count.toFixed(2)}`);
  for (const [what, bytes] of memories)
    console.log(`${what}: ${bytes === undefined ? 'not known' : `${(bytes / MIB).toFixed(1)} MiB`}`);
  const file = join(import.meta.dirname, '..', '..', 'build', 'bench.json');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(
    file,
    `${JSON.stringify({ series, ratio, writes: Object.fromEntries(writes), memories: Object.fromEntries(memories) }, null, 2)}\n`,
  );
} finally {
  await client.delete(namespaces, { name: namespace });
  await client.close();
}
