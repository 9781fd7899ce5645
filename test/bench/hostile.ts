/** Turns of an honest session while hostile pods of every kind print what they can, on the embedded cluster. */
import { sessions, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { eventually } from '../support/eventually.ts';
import { ATTACKS } from '../support/hostile-pod/attacks.ts';
import { HOSTILE_IMAGES, hostileClass } from '../support/hostile-pod/images.ts';
import { Installation, ONE_LEADER } from '../support/installation.ts';
import { BenchCluster } from './cluster.ts';
import { newTurn } from './embedded.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';

const SAMPLES = count(30, 8);
const PODS = 29;
const FIRST = 3;
/** Changes 1 MB of the state that cannot be compressed. */
const AGENT = {
  command: ['/bin/sh', '-c'],
  args: ['head -c 1000000 /dev/urandom > "$BERTH_STATE_DIR/big"; echo hello'],
  result: 'Text' as const,
};

export async function besideHostilePods(): Promise<Outcome> {
  const cluster = await Installation.start(ONE_LEADER, HOSTILE_IMAGES);
  try {
    cluster.startController();
    const session = await cluster.create('honest', { agent: AGENT });
    const watch = new BenchCluster(cluster.client, 'default');
    let made = 0;
    const sample = async () => {
      const name = `honest-${++made}`;
      const create = () => cluster.client.create(turns, newTurn(session, name, null));
      const { ms, object } = await watch.timed(turns, name, create, ({ status }) => isTerminal(status?.phase));
      if (object.status?.output !== 'hello\n') throw new Error(JSON.stringify(object));
      // The next one begins on a session at rest.
      await cluster.until('honest', 'counts the turn', ({ status }) => status?.turns?.succeeded === made);
      return ms;
    };
    const samples = async () => {
      const values: number[] = [];
      for (let i = 0; i < SAMPLES; i++) values.push(await sample());
      return values;
    };
    for (let i = 0; i < FIRST; i++) await sample();
    const alone = await samples();
    await attack(cluster);
    return { rows: [{ id: 'hostile', values: await samples(), floors: { 'turn without them': alone } }] };
  } finally {
    await cluster.stop();
  }
}

/** Starts the hostile sessions; resolves once all have run. */
async function attack(cluster: Installation): Promise<void> {
  const attacks = Object.keys(ATTACKS);
  for (const attack of attacks) await cluster.createClass(attack, hostileClass(attack));
  for (let i = 0; i < PODS; i++) {
    await cluster.create(`hostile-${i}`, { class: attacks[i % attacks.length] as string });
    await cluster.turn(`hostile-${i}`, `hostile-${i}`, null, { timeout: '1h' });
  }
  await eventually(
    async () => {
      const { items } = await cluster.client.list(sessions, { namespace: 'default' });
      const isReady = ({ status }: (typeof items)[number]) =>
        status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') || status?.turns?.failed;
      return items.filter(isReady).length >= PODS;
    },
    { what: 'all hostile pods run or have died', timeoutMs: 180_000 },
  );
}
