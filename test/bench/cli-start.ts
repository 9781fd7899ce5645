import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { finish } from '../e2e/support/cluster.ts';
import { tools } from '../support/tools.ts';
import { BenchCluster } from './cluster.ts';
import { cpuOf } from './cpu.ts';
import { newTurn } from './embedded.ts';
import { compared, type Figure } from './figures.ts';
import { newSession } from './ground.ts';
import { packagedBerth } from './packaged.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';
import { took } from './took.ts';
import { Watched } from './watched.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');
const NAMESPACE = 'default';
const SESSION = 'notes';

/** Samples of every program by its name, milliseconds. */
class Samples {
  readonly #values = new Map<string, number[]>();

  add(name: string, ms: number): void {
    this.#values.set(name, [...this.of(name), ms]);
  }

  of(name: string): number[] {
    return this.#values.get(name) ?? [];
  }
}

/** A session that is ready for turns by the API. Resolves with the milliseconds of a turn, created → result seen. */
async function readySession({ client }: BenchCluster): Promise<() => Promise<number>> {
  const watched = await Watched.open(client, turns, NAMESPACE);
  const session = await client.create(sessions, newSession(NAMESPACE, SESSION));
  let count = 0;
  const turn = async () => {
    count += 1;
    const name = `${SESSION}-${count}`;
    const create = () => client.create(turns, newTurn(session, name, 'x'));
    const { ms, object } = await watched.timed(name, create, ({ status }) => isTerminal(status?.phase));
    if (object.status?.phase !== 'Succeeded') throw new Error(JSON.stringify(object.status));
    return ms;
  };
  await turn();
  return turn;
}

/**
 * The command line as whole processes on the embedded cluster: of the npm package, and of the checkout. Elapsed time and
 * CPU time are of different runs, because what reads the CPU time takes time itself.
 */
export async function cliStarts(): Promise<Outcome> {
  const berth = await packagedBerth();
  const { kubectl } = await tools();
  const home = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const env = { HOME: home, BERTH_HOME: join(home, 'berth'), KUBECONFIG: join(home, 'berth/kubeconfig') };
  const run = async (file: string, ...args: string[]) => {
    const { code, stderr } = await finish(file, args, { env });
    if (code !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`);
  };
  const programs: Record<string, [file: string, ...args: string[]]> = {
    'node -e 0': [process.execPath, '-e', '0'],
    'kubectl get sessions': [kubectl, 'get', 'sessions'],
    'berth version --client': [berth, 'version', '--client'],
    'berth list': [berth, 'list'],
    'berth list of the checkout': [join(CHECKOUT, 'bin/berth'), 'list'],
    'berth turn': [berth, 'turn', SESSION, '--text', 'x'],
  };
  const [elapsed, cpu, trips] = [new Samples(), new Samples(), [] as number[]];
  let cluster: BenchCluster | undefined;
  try {
    await run(berth, 'local', 'up', '--detach');
    cluster = await BenchCluster.connect(NAMESPACE, env.KUBECONFIG);
    const turn = await readySession(cluster);
    // The first of each warms caches.
    for (let i = -1; i < SAMPLES; i++) {
      const trip = await turn();
      if (i >= 0) trips.push(trip);
      for (const [name, [file, ...args]] of Object.entries(programs)) {
        const ms = await took(() => run(file, ...args));
        const cpuMs = await cpuOf(file, args, { ...process.env, ...env });
        if (i < 0) continue;
        elapsed.add(name, ms);
        cpu.add(name, cpuMs);
      }
    }
  } finally {
    await cluster?.client.close();
    await run(berth, 'local', 'down');
    rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  }
  const beside = (name: string, other: string): Figure[] => [
    compared(`${name}, whole process`, elapsed.of(name), { what: other, values: elapsed.of(other) }),
    compared(`${name}, CPU time`, cpu.of(name), { what: other, values: cpu.of(other) }),
  ];
  return {
    rows: [
      {
        id: 'cli-list-embedded',
        values: elapsed.of('berth list'),
        floors: { 'kubectl get': elapsed.of('kubectl get sessions') },
      },
      { id: 'cli-turn-embedded', values: elapsed.of('berth turn'), floors: { 'turn round trip': trips } },
    ],
    figures: [
      ...beside('berth version --client', 'node -e 0'),
      ...beside('berth list', 'node -e 0'),
      ...beside('berth list', 'kubectl get sessions'),
      ...beside('berth list of the checkout', 'kubectl get sessions'),
      ...beside('berth turn', 'kubectl get sessions'),
    ],
  };
}
