/** Turns on a session whose pod is ready. */
import { eventually } from '../support/eventually.ts';
import { attaches, WriteMeter, withVariable } from './controller.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { count, SAMPLES, TAIL_SAMPLES } from './settings.ts';
import { spread } from './table.ts';

/** Turns that are not measured: the first ones of a process are slower. */
const FIRST = count(20, 3);
const BURST = count(40, 10);
const LINGER = '1s';
/** Parts of a turn, one after the other, as a client that creates it and watches sees them. */
const STEPS = {
  creation: 'created → the creation is answered',
  running: '→ Running is seen',
  result: '→ its result is seen',
} as const;

/** Turns one after the other, each beside its floors, and the steps of each as the client sees them. */
export async function readyTurns(ground: Ground): Promise<Outcome> {
  const { floors } = ground;
  const [session] = await ground.ready('turns');
  if (!session) throw new Error('there is no session');
  for (let i = 0; i < FIRST; i++) await ground.turn(session);
  const values: number[] = [];
  const beside: Record<'F-write' | 'F-attach' | 'F-spawn', number[]> = { 'F-write': [], 'F-attach': [], 'F-spawn': [] };
  const steps: Record<keyof typeof STEPS, number[]> = { creation: [], running: [], result: [] };
  for (let i = 0; i < TAIL_SAMPLES; i++) {
    beside['F-write'].push(await floors.write());
    beside['F-attach'].push(await floors.attach());
    beside['F-spawn'].push(await ground.spawn());
    const { ms, answeredMs, runningMs } = await ground.tracedTurn(session);
    values.push(ms);
    steps.creation.push(answeredMs);
    steps.running.push(runningMs - answeredMs);
    steps.result.push(ms - runningMs);
  }
  await ground.gone('turns');
  const figures = Object.entries(STEPS).map(([step, what]) => {
    const series = steps[step as keyof typeof STEPS];
    return { what: `turn on a ready session: ${what}`, measured: spread(series, 'ms', true), values: series };
  });
  return { rows: [{ id: 'turn', values, floors: beside }], figures };
}

/** API writes of turns that follow each other at once. */
export async function writesOfTurns(ground: Ground): Promise<Outcome> {
  const [session] = await ground.ready('writes');
  if (!session) throw new Error('there is no session');
  using writes = await WriteMeter.open(ground.cluster.client);
  const values: number[] = [];
  for (let burst = 0; burst < SAMPLES; burst++) {
    const before = await writes.settled();
    for (let i = 0; i < BURST; i++) await ground.turn(session);
    values.push(((await writes.settled()) - before) / BURST);
  }
  await ground.gone('writes');
  return { rows: [{ id: 'writes-turn', values, note: `bursts of ${BURST} turns, events included` }] };
}

/** Turns whose attach was closed before, each beside a turn right after it. */
export function idleTurns(ground: Ground): Promise<Outcome> {
  return withVariable('BERTH_ATTACH_LINGER', LINGER, async (leads) => {
    const [session] = await ground.ready('idle');
    if (!session) throw new Error('there is no session');
    const values: number[] = [];
    const beside: Record<'turn, attach open' | 'F-attach', number[]> = { 'turn, attach open': [], 'F-attach': [] };
    for (let i = 0; i < SAMPLES; i++) {
      await eventually(async () => (await attaches(ground.cluster.client, leads)) === 0, {
        what: 'the attach is closed',
      });
      values.push((await ground.turn(session)).ms);
      beside['turn, attach open'].push((await ground.turn(session)).ms);
      beside['F-attach'].push(await ground.floors.attach());
    }
    await ground.gone('idle');
    return { rows: [{ id: 'turn-idle', values, floors: beside, note: `closed after ${LINGER}, not an hour` }] };
  });
}
