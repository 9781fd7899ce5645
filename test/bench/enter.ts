import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { enterSession } from '../../core/enter/client.ts';
import { RemoteCommand } from '../../core/enter/command.ts';
import { type StoredSession, sessions as sessionKind, turns } from '../../core/resources/kinds.ts';
import { CONTAINER } from '../../core/resources/names.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { systemClock, systemRandom } from '../../core/system.ts';
import { finish } from '../e2e/support/cluster.ts';
import { tools } from '../support/tools.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import { requests } from './enter-ports.ts';
import { compared, type Figure, type Pair } from './figures.ts';
import { type Ground, newSession } from './ground.ts';
import type { Measured } from './judge.ts';
import { packagedBerth } from './packaged.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES } from './settings.ts';
import { median } from './statistics.ts';
import type { TargetId } from './targets.ts';
import { alternating } from './took.ts';

const TRIPS = count(200, 20);
const TRANSFERS = count(10, 3);
const BYTES = 100_000_000;
const SESSIONS = 8;
const COMMANDS = 8;
/** Port of the localhost of a session at which its server listens. */
const PORT = 3000;

/** Running sessions, and the programs that work inside them as whole processes. */
interface Place {
  cluster: BenchCluster;
  sessions: readonly StoredSession[];
  /** Absolute paths. */
  berth: string;
  kubectl: string;
  env: Record<string, string>;
}

/** Runs a command by way of the helper; resolves with its stdout. */
async function command({ cluster }: Place, session: StoredSession, ...words: string[]): Promise<string> {
  let stdout = '';
  const remote = new RemoteCommand({
    id: systemRandom.bytes(8).toString('hex'),
    start: { command: words },
    open: (wish, signal) => enterSession(cluster.client, session, wish, { clock: systemClock, signal }),
    onOutput: (_, bytes) => {
      stdout += bytes;
    },
    onLost: () => {},
    clock: systemClock,
    random: systemRandom,
    signal: new AbortController().signal,
  });
  const { code } = await remote.run();
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code} in session ${session.metadata.name}`);
  return stdout;
}

/** Runs `true` as a process of pods/exec by the same client. */
async function bare({ cluster }: Place, { metadata, status }: StoredSession): Promise<void> {
  const { namespace } = metadata;
  const stream = await cluster.client.exec(
    { namespace, name: status?.podName as string },
    { container: CONTAINER, command: ['true'], stdin: true, stdout: true, stderr: true },
  );
  const end = await stream.closed;
  if (end.by !== 'remote' || end.exitCode) throw new Error(`true by pods/exec: ${JSON.stringify(end)}`);
}

async function program(place: Place, file: string, ...args: string[]): Promise<void> {
  const all = ['-n', place.cluster.namespace, ...args];
  const { code, stderr } = await finish(file, all, { env: place.env });
  if (code !== 0) throw new Error(`${file} ${all.join(' ')}: ${stderr}`);
}

/** Runs a program with a redirection by `/bin/sh`, so that only the way of the bytes is measured. */
function redirected(place: Place, redirection: string, file: string, ...args: string[]): Promise<void> {
  const all = ['-c', `exec "$@" ${redirection}`, 'sh', file, '-n', place.cluster.namespace, ...args];
  return finish('/bin/sh', all, { env: place.env }).then(({ code, stderr }) => {
    if (code !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`);
  });
}

/** Command that takes all of its input, and fails where that is not BYTES. */
const TAKE = ['sh', '-c', `[ $(wc -c) = ${BYTES} ]`];

const rate = (ms: readonly number[]) => `${(BYTES / 1000 / median(ms)).toFixed(0)} MB/s`;

/** Row of BYTES that went by `berth`, and beside it by kubectl. */
function transferred(id: TargetId, floor: string, { values, beside }: Pair): Measured {
  return { id, values, floors: { [floor]: beside }, note: `${rate(values)}, kubectl ${rate(beside)}` };
}

/** Working inside sessions, by the API and by the command line, beside the same by pods/exec and kubectl. */
async function measure(place: Place, suffix: '' | '-embedded'): Promise<Outcome> {
  const { berth, kubectl, cluster } = place;
  const [session] = place.sessions;
  if (!session) throw new Error('there is no session');
  const { name } = session.metadata;
  const pod = session.status?.podName as string;
  const trips = await alternating(
    TRIPS,
    () => command(place, session, 'true'),
    () => bare(place, session),
  );
  const cli = await alternating(
    SAMPLES,
    () => program(place, berth, 'exec', name, '--', 'true'),
    () => program(place, kubectl, 'exec', pod, '-c', CONTAINER, '--', 'true'),
  );
  const all = place.sessions.flatMap((each) => Array.from({ length: COMMANDS }, () => each));
  const many = await alternating(
    TRANSFERS,
    () => Promise.all(all.map((each) => command(place, each, 'true'))),
    () => Promise.all(all.map((each) => bare(place, each))),
  );
  const figures: Figure[] = [
    compared('berth exec of true, whole process', cli.values, { what: 'kubectl exec of true', values: cli.beside }),
    compared(`${all.length} commands at once, in ${place.sessions.length} sessions: all exits`, many.values, {
      what: 'as many processes by pods/exec',
      values: many.beside,
    }),
  ];

  const work = (await command(place, session, 'pwd')).trim();
  await command(place, session, 'sh', '-c', `head -c ${BYTES} /dev/urandom >big`);
  const target = mkdtempSync(join(tmpdir(), 'berth-bench-enter-'));
  const file = join(target, 'big');
  try {
    const output = await alternating(
      TRANSFERS,
      () => redirected(place, '>/dev/null', berth, 'exec', name, '--', 'cat', 'big'),
      () => redirected(place, '>/dev/null', kubectl, 'exec', pod, '-c', CONTAINER, '--', 'cat', `${work}/big`),
    );
    const copied = async (run: Promise<void>) => {
      await run;
      if (statSync(file).size !== BYTES) throw new Error(`${file} has ${statSync(file).size} bytes`);
      rmSync(file);
    };
    const there = `${cluster.namespace}/${pod}:${work}`;
    const copies = await alternating(
      TRANSFERS,
      () => copied(program(place, berth, 'cp', `${name}:work/big`, file)),
      () => copied(program(place, kubectl, 'cp', '-c', CONTAINER, `${there}/big`, file)),
    );
    await program(place, berth, 'cp', `${name}:work/big`, file);
    const input = await alternating(
      TRANSFERS,
      () => redirected(place, `<${file}`, berth, 'exec', '-i', name, '--', ...TAKE),
      () => redirected(place, `<${file}`, kubectl, 'exec', '-i', pod, '-c', CONTAINER, '--', ...TAKE),
    );
    const copiesIn = await alternating(
      TRANSFERS,
      () => program(place, berth, 'cp', file, `${name}:work/own`),
      () => program(place, kubectl, 'cp', '-c', CONTAINER, file, `${there}/other`),
    );
    const arrived = await command(place, session, 'sh', '-c', 'cat own | wc -c; cat other | wc -c; rm own other');
    if (arrived.trim() !== `${BYTES}\n${BYTES}`) throw new Error(`of ${BYTES} bytes arrived: ${arrived}`);
    return {
      rows: [
        { id: `command${suffix}`, values: trips.values, floors: { 'true by pods/exec': trips.beside } },
        transferred(`command-output${suffix}`, 'kubectl exec cat', output),
        transferred(`command-input${suffix}`, 'kubectl exec -i', input),
        transferred(`files-out${suffix}`, 'kubectl cp', copies),
        transferred(`files-in${suffix}`, 'kubectl cp', copiesIn),
      ],
      figures,
    };
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

/** Requests to a server that a command of the session is. */
async function ports(place: Place): Promise<Figure[]> {
  const { berth, kubectl, cluster } = place;
  const session = place.sessions[1] as StoredSession;
  const { name } = session.metadata;
  const pod = session.status?.podName as string;
  await command(place, session, 'sh', '-c', `head -c ${BYTES} /dev/zero >big; echo small >small`);
  const server = ['busybox', 'httpd', '-f', '-p', `127.0.0.1:${PORT}`];
  await program(place, berth, 'exec', '--detach', '--id', 'server', name, '--', ...server);
  const forward = ['-n', cluster.namespace, 'port-forward'];
  const figures = await requests(
    [berth, ...forward, name, `:${PORT}`],
    [kubectl, ...forward, pod, `:${PORT}`],
    [
      { path: '/small', bytes: 6, samples: TRIPS },
      { path: '/big', bytes: BYTES, samples: TRANSFERS },
    ],
  );
  await program(place, berth, 'exec', '--kill', 'server', name);
  return figures;
}

/** On a real cluster. */
export async function enter(ground: Ground): Promise<Outcome> {
  const names = Array.from({ length: SESSIONS }, (_, i) => `enter-${i}`);
  const [berth, { kubectl }] = [await packagedBerth(), await tools()];
  await ground.ready(...names);
  try {
    const sessions = await readySessions(ground.cluster, names);
    const place = { cluster: ground.cluster, sessions, berth, kubectl, env: {} };
    const { rows, figures = [] } = await measure(place, '');
    // The embedded cluster has no kubectl port-forward.
    return { ...(rows && { rows }), figures: [...figures, ...(await ports(place))] };
  } finally {
    await ground.gone(...names);
  }
}

/** On the embedded cluster. */
export async function enterEmbedded(): Promise<Outcome> {
  const [berth, { kubectl }] = [await packagedBerth(), await tools()];
  const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const env = { HOME: home, BERTH_HOME: join(home, 'berth'), KUBECONFIG: join(home, 'berth/kubeconfig') };
  const local = async (...args: string[]) => {
    const { code, stderr } = await finish(berth, ['local', ...args], { env });
    if (code !== 0) throw new Error(`berth local ${args.join(' ')}: ${stderr}`);
  };
  let cluster: BenchCluster | undefined;
  try {
    await local('up', '--detach');
    cluster = await BenchCluster.connect('default', env.KUBECONFIG);
    const { client, namespace } = cluster;
    const names = Array.from({ length: SESSIONS }, (_, i) => `enter-${i}`);
    for (const name of names) {
      const session = await client.create(sessionKind, newSession(namespace, name));
      const create = () => client.create(turns, newTurn(session, `${name}-1`, 'x'));
      await cluster.timed(turns, `${name}-1`, create, ({ status }) => isTerminal(status?.phase));
    }
    const sessions = await readySessions(cluster, names);
    return await measure({ cluster, sessions, berth, kubectl, env }, '-embedded');
  } finally {
    await cluster?.client.close();
    await local('down');
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** The sessions as they are now, with the names of their pods. */
function readySessions({ client, namespace }: BenchCluster, names: readonly string[]): Promise<StoredSession[]> {
  return Promise.all(names.map((name) => client.get(sessionKind, { namespace, name })));
}
