/** Costs of sessions from their creation until they are gone. */
import { WriteMeter } from './controller.ts';
import type { Ground } from './ground.ts';
import { Pool } from './pool.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';
import { spread } from './table.ts';

/** API writes of sessions with one turn: on pods of their own, and on pods of a pool, whose refill is not counted. */
export async function writesOfLives(ground: Ground): Promise<Outcome> {
  const cold = await coldLives(ground);
  const note = 'its turn created by the controller; events included, the refill of the pool of 1 left out';
  const what = 'API writes of the controller for a session’s life with one turn, on a cold pod';
  return {
    rows: [{ id: 'writes-life', values: await warmLives(ground), note }],
    figures: [{ what, measured: spread(cold, 'writes'), values: cold }],
  };
}

async function coldLives(ground: Ground): Promise<number[]> {
  using writes = await WriteMeter.open(ground.cluster.client);
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const name = `life-${i}`;
    const before = await writes.settled();
    await ground.oneTurn(name);
    await ground.gone(name);
    values.push((await writes.settled()) - before);
  }
  return values;
}

async function warmLives(ground: Ground): Promise<number[]> {
  const pool = await Pool.open(ground);
  using writes = await WriteMeter.open(ground.cluster.client, ...Pool.refill(ground.namespace));
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const name = `warm-life-${i}`;
    await pool.full();
    const before = await writes.settled();
    pool.claimed(name, (await ground.oneTurn(name)).podUID);
    await ground.delete(name);
    await ground.podsGone(name);
    await pool.full();
    values.push((await writes.settled()) - before);
  }
  await pool.delete();
  await ground.gone();
  return values;
}
