import { signal } from '../e2e/support/node.ts';
import { fresh, leader, scale } from './controller.ts';
import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { count } from './settings.ts';

const SAMPLES = count(30, 2);

/** SIGKILL of the leader's process, until a session that is created right then has its first result; seconds. */
async function killed(ground: Ground, replicas: number): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const { targets } = await fresh(replicas);
    const name = `killed-${replicas}-${i}`;
    const started = performance.now();
    await signal('KILL', targets);
    await ground.oneTurn(name);
    values.push((performance.now() - started) / 1000);
    await ground.gone(name);
  }
  return values;
}

/** The leader killed, with one replica and with two. */
export async function leaderChange(ground: Ground): Promise<Outcome> {
  const one = await killed(ground, 1);
  await scale(2);
  try {
    const two = await killed(ground, 2);
    return {
      rows: [
        { id: 'leader-one', values: one },
        { id: 'leader-two', values: two },
      ],
    };
  } finally {
    await scale(1);
    await fresh();
    await leader();
  }
}
