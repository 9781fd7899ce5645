import { finish, kubectl } from '../e2e/support/cluster.ts';
import type { Ground } from './ground.ts';
import { packagedBerth } from './packaged.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';
import { took } from './took.ts';

const SESSIONS = 5;

/** Commands of the CLI, of the npm package, as whole processes, beside kubectl and beside a turn by the API. */
export async function commands(ground: Ground): Promise<Outcome> {
  const berth = await packagedBerth();
  const names = Array.from({ length: SESSIONS }, (_, i) => `command-${i}`);
  const [session] = await ground.ready(...names);
  if (!session) throw new Error('there is no session');
  const values: Record<'list' | 'get' | 'turn' | 'trip', number[]> = { list: [], get: [], turn: [], trip: [] };
  const run = async (...args: string[]) => {
    const { code, stderr } = await finish(berth, ['-n', ground.namespace, ...args]);
    if (code !== 0) throw new Error(`berth ${args.join(' ')}: ${stderr}`);
  };
  // The first of each warms caches.
  for (let i = -1; i < SAMPLES; i++) {
    const get = await took(() => kubectl(['get', 'sessions', '-n', ground.namespace]));
    const list = await took(() => run('list'));
    const { ms: trip } = await ground.turn(session);
    const turn = await took(() => run('turn', session.metadata.name, '--text', 'x'));
    if (i < 0) continue;
    values.get.push(get);
    values.list.push(list);
    values.trip.push(trip);
    values.turn.push(turn);
  }
  await ground.gone(...names);
  return {
    rows: [
      { id: 'cli-list', values: values.list, floors: { 'kubectl get': values.get }, note: `${SESSIONS} sessions` },
      { id: 'cli-turn', values: values.turn, floors: { 'turn round trip': values.trip } },
    ],
  };
}
