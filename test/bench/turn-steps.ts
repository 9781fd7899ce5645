/** Where the time of a turn on a ready session goes. */
import { type StoredSession, type Turn, turns } from '../../core/resources/kinds.ts';
import { isTerminal } from '../../core/resources/turn-phases.ts';
import { newTurn } from './embedded.ts';
import { compared, type Figure } from './figures.ts';
import type { Ground } from './ground.ts';
import { count } from './settings.ts';
import { spread } from './table.ts';

const SAMPLES = count(100, 10);
/** Turns that are not measured: the first ones of a process are slower. */
const FIRST = count(20, 3);

/** Milliseconds between two moments of a turn, as a client that creates it and watches sees them. */
interface Steps {
  creation: number;
  running: number;
  result: number;
  /** Of `result`: the agent's running time, as its runner measures it. */
  agent: number;
}

const STEPS: Readonly<Record<keyof Steps, string>> = {
  creation: 'created → the creation is answered',
  running: '→ Running is seen',
  result: '→ its result is seen',
  agent: 'of this, the agent’s running time (status.usage.wall)',
};

/** The steps of turns one after the other, beside the floors of a turn. */
export async function turnSteps(ground: Ground): Promise<Figure[]> {
  const { floors } = ground;
  const session = await ground.readyOne('steps');
  for (let i = 0; i < FIRST; i++) await ground.turn(session);
  const values: Record<keyof Steps, number[]> = { creation: [], running: [], result: [], agent: [] };
  const [whole, floor] = [[] as number[], [] as number[]];
  for (let i = 0; i < SAMPLES; i++) {
    floor.push((await floors.write()) + (await floors.attach()) + (await ground.spawn()));
    const steps = await stepsOf(ground, session, `steps-${i}`);
    for (const name of Object.keys(STEPS) as (keyof Steps)[]) values[name].push(steps[name]);
    whole.push(steps.creation + steps.running + steps.result);
  }
  await ground.gone('steps');
  const what = 'turn on a ready session';
  return [
    compared(`${what}, whole`, whole, { what: 'F-write + F-attach + F-spawn', values: floor }),
    ...Object.entries(STEPS).map(([name, step]) => {
      const series = values[name as keyof Steps];
      return { what: `${what}: ${step}`, measured: spread(series, 'ms', true), values: series };
    }),
  ];
}

async function stepsOf({ cluster, turns: watched }: Ground, session: StoredSession, name: string): Promise<Steps> {
  const running = watched.until(name, ({ status }: Turn) => status?.phase === 'Running');
  const ended = watched.until(name, ({ status }: Turn) => isTerminal(status?.phase));
  // A failure of the creation is the one to tell.
  for (const seen of [running, ended]) seen.catch(() => {});
  const created = performance.now();
  await cluster.client.create(turns, newTurn(session, name, 'x'));
  const answered = performance.now();
  const ran = await running;
  const { at, object } = await ended;
  if (object.status?.phase !== 'Succeeded') throw new Error(`turn ${name}: ${JSON.stringify(object.status)}`);
  const agent = (object.status.usage?.wall ?? Number.NaN) * 1000;
  return { creation: answered - created, running: ran.at - answered, result: at - ran.at, agent };
}
